// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"aead.dev/minisign"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
)

func makeRelease(ctx context.Context, t *testing.T, ws workspace.Workspace, key *minisign.PrivateKey) (string, error) {
	t.Helper()
	rel := New(ws, key)
	err := run.NewReporter(io.Discard, "release", ws.Logs()).Run(ctx, rel.Tasks()...)
	return rel.dist, errors.Join(err, rel.Close())
}

func TestTwoReleasesInTwoFoldersAreEqual(t *testing.T) {
	a, b := fakeWorkspace(t), fakeWorkspace(t)
	public, secret := newKey(t)
	var dirs []string
	for ws, key := range map[*workspace.Workspace]*minisign.PrivateKey{&a: secret, &b: nil} {
		dir, err := makeRelease(t.Context(), t, *ws, key)
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	// What make release prints.
	if out, err := exec.Command("diff", "--recursive", "--exclude", signatureName, dirs[0], dirs[1]).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	dir := filepath.Join(a.Dist(), "v1.37.2+capacityv2.1")
	checkSums(t, dir)
	signature, sums := read(t, filepath.Join(dir, signatureName)), read(t, filepath.Join(dir, sumsName))
	if !minisign.Verify(*public, sums, signature) || !strings.Contains(string(signature), "trusted comment: v1.37.2+capacityv2.1\n") {
		t.Errorf("%s is not signed for this version: %s", sumsName, signature)
	}
	if _, err := makeRelease(t.Context(), t, a, nil); err == nil || !strings.Contains(err.Error(), "is signed") {
		t.Errorf("a release without a signature in place of one with it: %v", err)
	}
	onlyTheRelease(t, a)
	checkFiles(t, dir)
	server := listing(t, filepath.Join(dir, "kubernetes-server-"+tag+".tar.gz"))
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
	if got := listing(t, filepath.Join(dir, "csi-provisioner-"+tag+".tar.gz")); got != "csi-provisioner"+want {
		t.Errorf("the provisioner's tarball has %s,\nwant csi-provisioner%s", got, want)
	}
	for program, want := range map[string]string{"kubelet": "v1.37.2+capacityv2.1 kubelet", "csi-provisioner": "v6.4.0+capacityv2.1 pools"} {
		out, err := exec.Command(filepath.Join(a.Components(), program)).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%s prints %q, %v; want %q", program, got, err, want)
		}
	}
	buildsWhatIsDamaged(t, a)
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

// checkFiles looks for what there has to be of every project, and for the images' names.
func checkFiles(t *testing.T, dir string) {
	t.Helper()
	var names []string
	for line := range strings.Lines(string(read(t, filepath.Join(dir, sumsName)))) {
		names = append(names, strings.Fields(line)[1])
	}
	want := "IMAGES capacityv2-series.tar.gz csi-provisioner-TAG.tar.gz csi-spec-src.tar.gz external-provisioner-src.tar.gz kubernetes-client-TAG.tar.gz" +
		" kubernetes-node-TAG.tar.gz kubernetes-server-TAG.tar.gz kubernetes-src.tar.gz sbom.spdx.json"
	if got := strings.Join(names, " "); got != strings.ReplaceAll(want, "TAG", tag) {
		t.Errorf("files %s", got)
	}
	images, err := os.ReadFile(filepath.Join(dir, imagesName))
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`sha256:[0-9a-f]{64}  registry\.k8s\.io/`).ReplaceAllString(string(images), "")
	if want := strings.Join([]string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"}, ":v1.37.2_capacityv2.1\n") +
		":v1.37.2_capacityv2.1\nsig-storage/csi-provisioner:v6.4.0_capacityv2.1\n"; list != want {
		t.Errorf("images:\n%s", images)
	}
}

func buildsWhatIsDamaged(t *testing.T, ws workspace.Workspace) {
	t.Helper()
	kubectl := filepath.Join(ws.Components(), "kubectl")
	write(t, kubectl, "damaged")
	if err := BuildComponents(t.Context(), ws, workspace.Kubernetes, io.Discard, ws.Components(), "kubectl", "kubelet"); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(kubectl).CombinedOutput(); err != nil || !strings.Contains(string(out), "kubectl") {
		t.Errorf("a damaged kubectl stays: %q, %v", out, err)
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

// checkSums checks them as make release says.
func checkSums(t *testing.T, dir string) {
	t.Helper()
	check := exec.Command("sha256sum", "--check", "--strict", sumsName)
	check.Dir = dir
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// refusals need a release in dist/, which each leaves as it is.
func refusals(t *testing.T, ws workspace.Workspace) {
	t.Helper()
	dir := filepath.Join(ws.Dist(), "v1.37.2+capacityv2.1")
	unchanged := func(what string, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", what, err, want)
		}
		checkSums(t, dir)
		onlyTheRelease(t, ws)
	}

	main := filepath.Join(ws.Tree(), "cmd/kubectl/main.go")
	good, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	write(t, main, string(good)+"// changed\n")
	_, err = makeRelease(t.Context(), t, ws, nil)
	// The provisioner, which comes first, is compiled against this tree.
	unchanged("a dirty tree", err, "dirty tree: files in "+ws.Tree()+" ")
	write(t, main, string(good))

	makefile := filepath.Join(project(t, ws, workspace.ExternalProvisioner).Tree(), "Makefile")
	write(t, makefile, "CMDS=something-else\n")
	commitAll(t, filepath.Dir(makefile))
	_, err = makeRelease(t.Context(), t, ws, nil)
	unchanged("a sidecar of another name", err, "Makefile builds something else")
	write(t, makefile, "CMDS=csi-provisioner\n")
	commitAll(t, filepath.Dir(makefile))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = makeRelease(ctx, t, ws, nil)
	unchanged("an interrupt", err, "context canceled")

	if err := os.Remove(filepath.Join(dir, sumsName)); err != nil {
		t.Fatal(err)
	}
	if _, err := makeRelease(t.Context(), t, ws, nil); err == nil || !strings.Contains(err.Error(), "something else") {
		t.Errorf("a folder of something else: %v", err)
	}
}
