package cluster

import (
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/machine"
	"capacityv2.internal/scripts/node"
	"capacityv2.internal/scripts/workspace"
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

func TestScriptEnv(t *testing.T) {
	t.Setenv("FEATURE_GATES", "AllAlpha=true")  // the user's shell must not decide
	t.Setenv("KUBECONFIG", "/home/user/config") // nor lead kubectl elsewhere
	t.Setenv("LOG_LEVEL", "5")
	ws := workspace.Workspace{Root: "/r", Work: "/r/_work"}
	options := Options{Gates: "CSIStorageCapacityV2=true", Components: ws.Components(), RuntimeEndpoint: "unix:///run/x.sock"}
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
			script{mode: ModeFull, node: n, cgroupRoot: "/capacityv2-1", cgroupV1: true},
			map[string]string{"START_MODE": "all", "API_HOST": "10.59.249.2", "HOSTNAME_OVERRIDE": "node1", "CGROUP_ROOT": "/capacityv2-1", "CONTAINER_RUNTIME_ENDPOINT": "unix:///run/containerd/containerd.sock"},
			[]string{"API_SECURE_PORT"},
		},
		{
			script{mode: ModeHost},
			map[string]string{"START_MODE": "all", "CONTAINER_RUNTIME_ENDPOINT": "unix:///run/x.sock"},
			[]string{"CGROUP_ROOT", "API_BIND_ADDR"},
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
			if v1 := strings.Contains(env["KUBELET_FLAGS"], "--fail-cgroupv1=false"); v1 != test.script.cgroupV1 {
				t.Errorf("KUBELET_FLAGS=%q with cgroup v1: %v", env["KUBELET_FLAGS"], test.script.cgroupV1)
			}
		})
	}
}

func TestRequirePlainPath(t *testing.T) {
	for path, ok := range map[string]bool{"/home/a/k8s_v2-x.y": true, "/home/a b": false, `/home/a"b`: false, "/home/$a": false} {
		if err := requirePlainPath(path); (err == nil) != ok {
			t.Errorf("%s: %v", path, err)
		}
	}
}
