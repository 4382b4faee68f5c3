package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/workspace"
)

// fakeWorkspace is a checkout with a tree of upstream's programs that print
// their version and do nothing else.
func fakeWorkspace(t *testing.T) workspace.Workspace {
	t.Helper()
	root := t.TempDir()
	ws := workspace.Workspace{Root: root, Work: filepath.Join(root, "_work")}
	write(t, filepath.Join(ws.Pin("kubernetes"), "go.mod"), "module pin\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v1.37.1\n")
	write(t, filepath.Join(ws.Pin("kubernetes"), "go.sum"), "k8s.io/kubernetes v1.37.1 "+h1+"\n")
	write(t, filepath.Join(ws.Series(), "REVISION"), "1\n")
	write(t, filepath.Join(ws.Series(), "series"), "")
	write(t, ws.Gates(), "gates: []\n")

	tree := ws.Tree()
	const stage = "staging/src/k8s.io/component-base"
	write(t, filepath.Join(tree, "go.work"), "go 1.26.0\n\nuse (\n\t.\n\t./"+stage+"\n\t./staging/src/k8s.io/kube-aggregator\n\t./staging/src/k8s.io/apiextensions-apiserver\n)\n")
	write(t, filepath.Join(tree, "go.mod"), "module k8s.io/kubernetes\n\ngo 1.26.0\n")
	for _, m := range []string{"component-base", "kube-aggregator", "apiextensions-apiserver"} {
		write(t, filepath.Join(tree, "staging/src/k8s.io", m, "go.mod"), "module k8s.io/"+m+"\n\ngo 1.26.0\n")
	}
	write(t, filepath.Join(tree, stage, "version/version.go"), "package version\n\nvar gitVersion = \"none\"\n\nfunc Get() string { return gitVersion }\n")
	for _, p := range slices.Concat(serverTargets, clientTargets) {
		write(t, filepath.Join(tree, p, "main.go"), "package main\n\nimport \"k8s.io/component-base/version\"\n\nfunc main() { println(version.Get(), \""+path.Base(p)+"\") }\n")
	}
	write(t, filepath.Join(tree, "hack/lib/init.sh"), fmt.Sprintf("KUBE_CLIENT_TARGETS=(%s)\nKUBE_NODE_TARGETS=(%s)\nKUBE_SERVER_TARGETS=(%s)\n",
		strings.Join(clientTargets, " "), strings.Join(nodeTargets, " "), strings.Join(serverTargets, " ")))
	write(t, filepath.Join(tree, "LICENSES/LICENSE"), "Apache-2.0\n")
	commitAll(t, tree)
	if err := gitrepo.Open(tree, nil).Git(t.Context(), "update-ref", base.Ref, "HEAD"); err != nil {
		t.Fatal(err)
	}
	return ws
}

func makeRelease(ctx context.Context, t *testing.T, ws workspace.Workspace, o Options) (string, error) {
	t.Helper()
	return Run(ctx, ws, o, progress.New(io.Discard, "release", ws.Logs()))
}

func TestTwoReleasesInTwoFoldersAreEqual(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "")
	linux := Platform{"linux", Host().Arch}
	a, b := fakeWorkspace(t), fakeWorkspace(t)
	var dirs []string
	for _, ws := range []workspace.Workspace{a, b} {
		dir, err := makeRelease(t.Context(), t, ws, Options{Platforms: []Platform{linux}})
		if err != nil {
			t.Fatal(err)
		}
		if err := Verify(dir); err != nil {
			t.Error(err)
		}
		dirs = append(dirs, dir)
	}
	if err := Compare(dirs[0], dirs[1]); err != nil {
		t.Error(err)
	}
	onlyTheRelease(t, a)
	m, err := ReadManifest(dirs[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Programs) != len(linux.programs()) || len(m.Images) != len(imagePrograms) || m.Base.Tree == "" || m.Source.Commit == "" || m.Go.Version == "" {
		t.Errorf("manifest %+v", m)
	}
	server := listing(t, filepath.Join(dirs[0], "kubernetes-server-"+linux.tag()+".tar.gz"))
	for _, want := range []string{"kubernetes/LICENSES/LICENSE 644", "kubernetes/addons/ 755", "kubernetes/kubernetes-src.tar.gz 644", "kubernetes/version 644",
		"kubernetes/server/bin/kube-apiserver 755", "kubernetes/server/bin/kube-apiserver.tar 644", "kubernetes/server/bin/kube-apiserver.docker_tag 644",
		"kubernetes/server/bin/mounter 755", "kubernetes/server/bin/kubectl-convert 755"} {
		if !strings.Contains(server, want) {
			t.Errorf("no %q in the server tarball", want)
		}
	}
	if Host() == linux {
		out, err := exec.Command(filepath.Join(a.Components(), "kubelet")).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != "v1.37.1+capacityv2.1 kubelet" {
			t.Errorf("kubelet prints %q, %v", got, err)
		}
	}
	buildsOnlyWhatChanged(t, a)
	refusals(t, a)
}

func onlyTheRelease(t *testing.T, ws workspace.Workspace) {
	t.Helper()
	entries, err := os.ReadDir(ws.Dist())
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != "v1.37.1+capacityv2.1" {
		t.Errorf("dist holds %v", entries)
	}
}

func buildsOnlyWhatChanged(t *testing.T, ws workspace.Workspace) {
	t.Helper()
	var log strings.Builder
	build := func() string {
		log.Reset()
		if err := BuildComponents(t.Context(), ws, &log, ws.Components(), "kubectl", "kubelet"); err != nil {
			t.Fatal(err)
		}
		return log.String()
	}
	kubectl := filepath.Join(ws.Components(), "kubectl")
	if Host().OS == "linux" {
		if got := build(); !strings.Contains(got, "nothing to build") {
			t.Errorf("an unchanged tree is built: %s", got)
		}
	}
	build()
	write(t, kubectl, "damaged")
	if got := build(); !strings.Contains(got, "cmd/kubectl") || strings.Contains(got, "cmd/kubelet") {
		t.Errorf("a damaged kubectl gives: %s", got)
	}
	if err := BuildComponents(t.Context(), ws, &log, ws.Components(), "kube-nothing"); err == nil {
		t.Error("an unknown program is built")
	}
}

// refusals need a release in dist/, which each leaves as it is.
func refusals(t *testing.T, ws workspace.Workspace) {
	t.Helper()
	linux := Options{Platforms: []Platform{{"linux", Host().Arch}}}
	dir := filepath.Join(ws.Dist(), "v1.37.1+capacityv2.1")
	unchanged := func(what string, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", what, err, want)
		}
		if err := Verify(dir); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		onlyTheRelease(t, ws)
	}

	checked := linux
	checked.CheckTree = func(context.Context) error { return errors.New("not the series") }
	_, err := makeRelease(t.Context(), t, ws, checked)
	unchanged("a tree that is not the series", err, "not the series")

	main := filepath.Join(ws.Tree(), "cmd/kubectl/main.go")
	good, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	write(t, main, string(good)+"// changed\n")
	_, err = makeRelease(t.Context(), t, ws, linux)
	unchanged("a dirty tree", err, "dirty tree")
	write(t, main, string(good))

	ctx, cancel := context.WithCancel(t.Context())
	cancelling := linux
	cancelling.CheckTree = func(context.Context) error { cancel(); return nil }
	_, err = makeRelease(ctx, t, ws, cancelling)
	unchanged("an interrupt", err, "context canceled")

	write(t, filepath.Join(dir, ManifestName), `{"version":"v9.9.9"}`)
	if _, err := makeRelease(t.Context(), t, ws, linux); err == nil || !strings.Contains(err.Error(), "something else") {
		t.Errorf("a folder of something else: %v", err)
	}
}
