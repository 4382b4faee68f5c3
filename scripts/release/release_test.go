package release

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/workspace"
)

func makeRelease(ctx context.Context, t *testing.T, ws workspace.Workspace, o Options) (string, error) {
	t.Helper()
	rel := New(ws, o)
	err := progress.New(io.Discard, "release", ws.Logs()).Run(ctx, rel.Tasks()...)
	return rel.Dir(), errors.Join(err, rel.Close())
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
	checkManifest(t, dirs[0], linux)
	server := listing(t, filepath.Join(dirs[0], "kubernetes-server-"+linux.tag()+".tar.gz"))
	for _, want := range []string{"kubernetes/LICENSES/LICENSE 644", "kubernetes/addons/ 755", "kubernetes/kubernetes-src.tar.gz 644", "kubernetes/version 644",
		"kubernetes/server/bin/kube-apiserver 755", "kubernetes/server/bin/kube-apiserver.tar 644", "kubernetes/server/bin/kube-apiserver.docker_tag 644",
		"kubernetes/server/bin/mounter 755", "kubernetes/server/bin/kubectl-convert 755"} {
		if !strings.Contains(server, want) {
			t.Errorf("no %q in the server tarball", want)
		}
	}
	if strings.Contains(server, "LICENSES/vendor/") {
		t.Error("the licence of a module of the tree is in LICENSES/vendor, too")
	}
	want := strings.Join([]string{"/ 755", "LICENSES/ 755", "LICENSES/LICENSE 644", "LICENSES/vendor/ 755",
		"LICENSES/vendor/github.com/ 755", "LICENSES/vendor/github.com/container-storage-interface/ 755",
		"LICENSES/vendor/github.com/container-storage-interface/spec/ 755", "LICENSES/vendor/github.com/container-storage-interface/spec/LICENSE 644",
		"LICENSES/vendor/k8s.io/ 755", "LICENSES/vendor/k8s.io/component-base/ 755", "LICENSES/vendor/k8s.io/component-base/LICENSE 644",
		"csi-provisioner 755", "csi-provisioner.docker_tag 644", "csi-provisioner.tar 644", "external-provisioner-src.tar.gz 644", "version 644"}, ", csi-provisioner/")
	if got := listing(t, filepath.Join(dirs[0], "csi-provisioner-"+linux.tag()+".tar.gz")); got != "csi-provisioner"+want {
		t.Errorf("the provisioner's tarball has %s,\nwant csi-provisioner%s", got, want)
	}
	if Host() == linux {
		for program, want := range map[string]string{"kubelet": "v1.37.2+capacityv2.1 kubelet", "csi-provisioner": "v6.4.0+capacityv2.1 pools"} {
			out, err := exec.Command(filepath.Join(a.Components(), program)).CombinedOutput()
			if got := strings.TrimSpace(string(out)); err != nil || got != want {
				t.Errorf("%s prints %q, %v; want %q", program, got, err, want)
			}
		}
	}
	buildsOnlyWhatChanged(t, a)
	buildsWhatIsLinked(t, a)
	refusals(t, a)
}

func onlyTheRelease(t *testing.T, ws workspace.Workspace) {
	t.Helper()
	entries, err := os.ReadDir(ws.Dist())
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != "v1.37.2+capacityv2.1" {
		t.Errorf("dist holds %v", entries)
	}
}

// checkManifest looks for every project, and for who was made from which.
func checkManifest(t *testing.T, dir string, p Platform) {
	t.Helper()
	m, err := ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range m.Sources {
		got = append(got, s.Name+" "+s.Version)
		if s.Base.Tree == "" || s.Commit == "" || s.Tree == "" || s.Title == "" || s.Module == "" {
			t.Errorf("source %+v", s)
		}
	}
	if want := "csi-spec v1.13.0+capacityv2.1, external-provisioner v6.4.0+capacityv2.1, kubernetes v1.37.2+capacityv2.1"; strings.Join(got, ", ") != want {
		t.Errorf("sources %v, want %s", got, want)
	}
	if len(m.Sources[1].Patches) != 1 || m.Sources[1].Ldflags != "-s -w -X main.version=v6.4.0+capacityv2.1" || m.Sources[0].Ldflags != "" {
		t.Errorf("source %+v", m.Sources[1])
	}
	programs := map[string]int{}
	for _, prog := range m.Programs {
		programs[prog.Source]++
	}
	if len(programs) != 2 || programs["external-provisioner"] != 1 || programs["kubernetes"] != len(p.programs("kubernetes")) {
		t.Errorf("programs of %v", programs)
	}
	images := map[string]string{}
	for _, i := range m.Images {
		images[i.Reference] = i.Archive
	}
	if got := images["registry.k8s.io/sig-storage/csi-provisioner:v6.4.0_capacityv2.1"]; len(images) != 5 || got != "csi-provisioner-"+p.tag()+".tar.gz" {
		t.Errorf("images %v", images)
	}
	artefacts := map[string]bool{}
	for _, a := range m.Artefacts {
		artefacts[a.Name] = true
	}
	for _, want := range []string{"csi-spec-src.tar.gz", "external-provisioner-src.tar.gz", "kubernetes-src.tar.gz", "capacityv2-series.tar.gz"} {
		if !artefacts[want] {
			t.Errorf("no %s in %v", want, sortedKeys(artefacts))
		}
	}
}

func buildsOnlyWhatChanged(t *testing.T, ws workspace.Workspace) {
	t.Helper()
	build := func(project string, programs ...string) string {
		t.Helper()
		var log strings.Builder
		if err := BuildComponents(t.Context(), ws, project, &log, ws.Components(), programs...); err != nil {
			t.Fatal(err)
		}
		return log.String()
	}
	if Host().OS == "linux" {
		if got := build(workspace.Kubernetes, "kubectl", "kubelet"); !strings.Contains(got, "nothing to build") {
			t.Errorf("an unchanged tree is built: %s", got)
		}
	}
	build(workspace.Kubernetes, "kubectl", "kubelet")
	write(t, filepath.Join(ws.Components(), "kubectl"), "damaged")
	if got := build(workspace.Kubernetes, "kubectl", "kubelet"); !strings.Contains(got, "cmd/kubectl") || strings.Contains(got, "cmd/kubelet") {
		t.Errorf("a damaged kubectl gives: %s", got)
	}
	for _, c := range []struct{ project, name, want string }{
		{workspace.Kubernetes, "kube-nothing", "kube-nothing is not a program of the kubernetes release"},
		{workspace.ExternalProvisioner, "kubelet", "kubelet is not a program of the external-provisioner release"},
		{"csi-spec", "kubelet", "kubelet is not a program of the csi-spec release"},
		{"nothing", "kubelet", "unknown project"},
	} {
		err := BuildComponents(t.Context(), ws, c.project, io.Discard, ws.Components(), c.name)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: error %v, want %q", c.name, c.project, err, c.want)
		}
	}
}

// buildsWhatIsLinked changes what is compiled into the provisioner.
func buildsWhatIsLinked(t *testing.T, ws workspace.Workspace) {
	t.Helper()
	build := func() string {
		t.Helper()
		var log strings.Builder
		if err := BuildComponents(t.Context(), ws, workspace.ExternalProvisioner, &log, ws.Components(), "csi-provisioner"); err != nil {
			t.Fatal(err)
		}
		return log.String()
	}
	provisioner, spec := project(t, ws, workspace.ExternalProvisioner).Tree(), project(t, ws, "csi-spec").Tree()
	readme := filepath.Join(spec, "README")
	before, err := gitrepo.Open(spec, nil).Rev(t.Context(), "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	build()
	for _, c := range []struct {
		name   string
		change func()
		built  bool
	}{
		{"nothing", func() {}, false},
		{"a commit of its tree", func() { write(t, filepath.Join(provisioner, "README"), "new"); commitAll(t, provisioner) }, true},
		{"a commit of a linked tree", func() { write(t, readme, "new"); commitAll(t, spec) }, true},
		{"nothing after that", func() {}, false},
		{"the sums of the workspace", func() { write(t, filepath.Join(provisioner, "go.work.sum"), "\n") }, true},
		{"a file of a linked tree", func() { write(t, readme, "newer") }, true},
		{"nothing, while that tree is dirty", func() {}, true},
	} {
		c.change()
		if got := build(); strings.Contains(got, "nothing to build") == c.built {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	if err := gitrepo.Open(spec, nil).Git(t.Context(), "reset", "--quiet", "--hard", before); err != nil {
		t.Fatal(err)
	}
}

// refusals need a release in dist/, which each leaves as it is.
func refusals(t *testing.T, ws workspace.Workspace) {
	t.Helper()
	linux := Options{Platforms: []Platform{{"linux", Host().Arch}}}
	dir := filepath.Join(ws.Dist(), "v1.37.2+capacityv2.1")
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
	checked.CheckTree = func(_ context.Context, p workspace.Project) error {
		if p.Name == workspace.ExternalProvisioner {
			return errors.New("not the series")
		}
		return nil
	}
	_, err := makeRelease(t.Context(), t, ws, checked)
	unchanged("a tree that is not the series", err, "not the series")

	main := filepath.Join(ws.Tree(), "cmd/kubectl/main.go")
	good, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	write(t, main, string(good)+"// changed\n")
	_, err = makeRelease(t.Context(), t, ws, linux)
	// The provisioner, which comes first, is compiled against this tree.
	unchanged("a dirty tree", err, "dirty tree: files in "+ws.Tree()+" ")
	write(t, main, string(good))

	makefile := filepath.Join(project(t, ws, workspace.ExternalProvisioner).Tree(), "Makefile")
	write(t, makefile, "CMDS=something-else\n")
	commitAll(t, filepath.Dir(makefile))
	_, err = makeRelease(t.Context(), t, ws, linux)
	unchanged("a sidecar of another name", err, "Makefile builds something else")
	write(t, makefile, "CMDS=csi-provisioner\n")
	commitAll(t, filepath.Dir(makefile))

	ctx, cancel := context.WithCancel(t.Context())
	cancelling := linux
	cancelling.CheckTree = func(context.Context, workspace.Project) error { cancel(); return nil }
	_, err = makeRelease(ctx, t, ws, cancelling)
	unchanged("an interrupt", err, "context canceled")

	write(t, filepath.Join(dir, ManifestName), `{"version":"v9.9.9"}`)
	if _, err := makeRelease(t.Context(), t, ws, linux); err == nil || !strings.Contains(err.Error(), "something else") {
		t.Errorf("a folder of something else: %v", err)
	}
}
