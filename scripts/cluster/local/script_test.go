// SPDX-License-Identifier: Apache-2.0

package local

import (
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/cluster/machine"
	"capacityv2.internal/scripts/cluster/node"
	"capacityv2.internal/scripts/ground/workspace"
)

// envMap fails on a variable that is there twice: which one wins is the shell's.
func envMap(t *testing.T, list []string) map[string]string {
	t.Helper()
	m := map[string]string{}
	for _, kv := range list {
		k, v, _ := strings.Cut(kv, "=")
		if _, ok := m[k]; ok {
			t.Errorf("%s is there twice", k)
		}
		m[k] = v
	}
	return m
}

func TestPrograms(t *testing.T) {
	p := places{t.TempDir()}
	if err := p.make(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"sudo", "-n", "-E", "echo", "a b"}, {"gsed", "-n", "s/x/a b/p"}} {
		cmd := exec.Command(filepath.Join(p.programs(), args[0]), args[1:]...)
		cmd.Stdin = strings.NewReader("x\n")
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "a b\n" {
			t.Errorf("%s: printed %q (%v), expected %q", strings.Join(args, " "), out, err, "a b\n")
		}
	}
}

func TestScriptEnv(t *testing.T) {
	t.Setenv("FEATURE_GATES", "AllAlpha=true")  // the user's shell must not decide
	t.Setenv("KUBECONFIG", "/home/user/config") // nor lead kubectl elsewhere
	t.Setenv("LOG_LEVEL", "5")
	ws := workspace.Workspace{Root: "/r", Work: "/r/_work"}
	options := Options{Gates: "CSIStorageCapacityV2=true", Components: ws.Components()}
	n := node.New(ws.Cluster(), netip.MustParsePrefix("10.59.249.0/24"), 1)
	for _, test := range []struct {
		script script
		want   map[string]string
		absent []string
	}{
		{
			script{mode: ModeControlPlane, ports: []port{{Variable: "API_SECURE_PORT", Number: 26443}}},
			map[string]string{"START_MODE": "nokubelet,nokubeproxy", "API_SECURE_PORT": "26443", "API_BIND_ADDR": "127.0.0.1", "ADVERTISE_ADDRESS": "203.0.113.1", "CONTROLPLANE_SUDO": ""},
			[]string{"KUBELET_FLAGS", "CONTAINER_RUNTIME_ENDPOINT"},
		},
		{
			script{mode: ModeControlPlane, defaultRoute: true},
			map[string]string{"START_MODE": "nokubelet,nokubeproxy"},
			[]string{"ADVERTISE_ADDRESS"},
		},
		{
			script{mode: ModeFull, node: n, cgroupRoot: "/capacityv2-1"},
			map[string]string{"START_MODE": "all", "API_HOST": "10.59.249.2", "HOSTNAME_OVERRIDE": "node1", "CGROUP_ROOT": "/capacityv2-1",
				"KUBELET_FLAGS": "--image-gc-high-threshold=100 --volume-plugin-dir=/r/_work/cluster/volume-plugins --fail-cgroupv1=false --node-ip=10.59.249.2", "CONTAINER_RUNTIME_ENDPOINT": "unix:///run/containerd/containerd.sock"},
			[]string{"API_SECURE_PORT"},
		},
	} {
		t.Run(string(test.script.mode), func(t *testing.T) {
			test.script.ws, test.script.options, test.script.mark = ws, options, "m1"
			list := test.script.env()
			if !slices.IsSorted(list) {
				t.Error("not sorted")
			}
			env := envMap(t, list)
			for _, common := range []string{"CERT_DIR", "LOG_DIR", "ETCD_DIR", "TMP_DIR", "TMPDIR", "HOME"} {
				if !strings.HasPrefix(env[common], ws.Cluster()+string(filepath.Separator)) {
					t.Errorf("%s=%s is outside of %s", common, env[common], ws.Cluster())
				}
			}
			test.want["FEATURE_GATES"], test.want["LOG_LEVEL"], test.want[machine.MarkVariable] = options.Gates, "5", "m1"
			for k, want := range test.want {
				if got, ok := env[k]; got != want || !ok {
					t.Errorf("%s=%q (set: %v), want %q", k, got, ok, want)
				}
			}
			for _, k := range append(test.absent, "KUBECONFIG") {
				if v, ok := env[k]; ok {
					t.Errorf("%s=%q, want it unset", k, v)
				}
			}
		})
	}
}
