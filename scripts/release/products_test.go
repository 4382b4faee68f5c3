package release

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"capacityv2.internal/scripts/workspace"
)

func TestProgramsOfPlatforms(t *testing.T) {
	const server = "apiextensions-apiserver kube-aggregator kube-apiserver kube-controller-manager kube-log-runner kube-proxy kube-scheduler kubeadm kubectl kubectl-convert kubelet mounter"
	for _, c := range []struct {
		p             Platform
		project, want string
	}{
		{Platform{"linux", "arm64"}, workspace.Kubernetes, server},
		{Platform{"darwin", "arm64"}, workspace.Kubernetes, "kubectl kubectl-convert"},
		{Platform{"linux", "s390x"}, workspace.ExternalProvisioner, "csi-provisioner"},
		{Platform{"windows", "amd64"}, workspace.ExternalProvisioner, ""},
		{Platform{"linux", "amd64"}, "csi-spec", ""},
	} {
		if got := strings.Join(c.p.programs(c.project), " "); got != c.want {
			t.Errorf("%s for %s: %s, want %s", c.project, c.p, got, c.want)
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
