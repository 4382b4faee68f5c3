// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/workspace"
)

func TestPrograms(t *testing.T) {
	const server = "apiextensions-apiserver kube-aggregator kube-apiserver kube-controller-manager kube-log-runner kube-proxy kube-scheduler kubeadm kubectl kubectl-convert kubelet mounter"
	for project, want := range map[string]string{workspace.Kubernetes: server, workspace.ExternalProvisioner: "csi-provisioner", "csi-spec": ""} {
		if got := strings.Join(Programs(project), " "); got != want {
			t.Errorf("%s: %s, want %s", project, got, want)
		}
	}
}

func TestCheckKubeadm(t *testing.T) {
	v := Version{"v1.37.2", 1}
	const registry, ours = "registry.k8s.io/", ":v1.37.2_capacityv2.1\n"
	packed := map[string]string{registry + "kube-apiserver:v1.37.2_capacityv2.1": "sha256:1"}
	for name, c := range map[string]struct{ prints, upstream, refused string }{
		"images of a release": {registry + "kube-apiserver" + ours + registry + "kube-proxy" + ours + registry + "pause:3.10\n", "registry.k8s.io/kube-proxy:v1.37.2 registry.k8s.io/pause:3.10", ""},
		"another component":   {registry + "kube-new" + ours + registry + "pause:3.10\n", "", "kubeadm asks for registry.k8s.io/kube-new:v1.37.2_capacityv2.1"},
		"another name":        {registry + "k8s/kube-apiserver" + ours, "", "kubeadm asks for registry.k8s.io/k8s/kube-apiserver"},
		"nothing":             {"", "", "printed"},
	} {
		kubeadm := filepath.Join(t.TempDir(), "kubeadm")
		write(t, kubeadm, "#!/bin/sh\n[ \"$*\" = 'config images list --kubernetes-version v1.37.2+capacityv2.1' ] || exit 1\ncat <<end\n"+c.prints+"end\n")
		if err := os.Chmod(kubeadm, 0o755); err != nil {
			t.Fatal(err)
		}
		upstream, err := checkKubeadm(t.Context(), kubeadm, v, packed, io.Discard)
		if got := strings.Join(upstream, " "); got != c.upstream || (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %q, %v, want %q and %q", name, got, err, c.upstream, c.refused)
		}
	}
}

func TestCheckTargets(t *testing.T) {
	dir := t.TempDir()
	script := func(server ...string) {
		write(t, filepath.Join(dir, "hack/lib/init.sh"), fmt.Sprintf("KUBE_CLIENT_TARGETS=(%s)\nKUBE_NODE_TARGETS=(%s)\nKUBE_SERVER_TARGETS=(%s)\n",
			strings.Join(clientTargets, " "), strings.Join(nodeTargets, " "), strings.Join(server, " ")))
	}
	script(serverTargets...)
	if err := checkTargets(t.Context(), dir); err != nil {
		t.Errorf("the same lists: %v", err)
	}
	script(append([]string{"cmd/kube-new"}, serverTargets...)...)
	if err := checkTargets(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "cmd/kube-new") {
		t.Errorf("a new program of upstream: %v", err)
	}
	write(t, filepath.Join(dir, "hack/lib/init.sh"), "exit 0\n")
	if err := checkTargets(t.Context(), dir); err == nil {
		t.Error("a script that says nothing passes")
	}
}

func TestCheckSidecar(t *testing.T) {
	good := map[string]string{
		"Makefile": "# The sidecar\nCMDS=csi-provisioner\nall: build\n", "release-tools/build.make": "IMPORTPATH_LDFLAGS = -X main.version=$(REV)\n",
		"Dockerfile": "FROM scratch\nENTRYPOINT [\"/csi-provisioner\"]\n",
	}
	for file, bad := range map[string]string{
		"":                         "",
		"Makefile":                 "CMDS=csi-provisioner other\n",
		"release-tools/build.make": "IMPORTPATH_LDFLAGS = -X example.com/version.Version=$(REV)\n",
		"Dockerfile":               "ENTRYPOINT [\"/bin/csi-provisioner\"]\n",
	} {
		dir := t.TempDir()
		for f, content := range good {
			write(t, filepath.Join(dir, f), content)
		}
		if file != "" {
			write(t, filepath.Join(dir, file), bad)
		}
		err := checkSidecar(dir, "csi-provisioner")
		if (err == nil) != (file == "") || err != nil && !strings.Contains(err.Error(), file+" builds something else") {
			t.Errorf("another %q: %v", file, err)
		}
	}
}
