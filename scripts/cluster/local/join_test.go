// SPDX-License-Identifier: Apache-2.0

package local

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/cluster/node"
	"capacityv2.internal/scripts/ground/workspace"
)

// TestJoiningPrograms checks that a node that joins shares nothing with the first
// one that has to be its own.
func TestJoiningPrograms(t *testing.T) {
	t.Setenv("LOG_LEVEL", "")
	nodes, specs := testNodes(t, 2)
	ws := workspace.Workspace{Root: "/r", Work: "/r/_work"}
	s := script{ws: ws, options: Options{Components: "/c"}}
	n := nodes[1]
	programs := s.joiningPrograms(n, "/capacityv2-1-node2")
	if len(programs) != 2 || programs[0].Log == programs[1].Log {
		t.Fatalf("programs %+v, want two", programs)
	}
	for _, want := range []string{
		"/c/kubelet", "--v=3", "--config=/r/_work/cluster/config/kubelet.yaml",
		"--hostname-override=node2", "--node-ip=10.59.249.3", "--address=10.59.249.3", "--healthz-bind-address=10.59.249.3",
		"--cgroup-root=/capacityv2-1-node2", "--kubeconfig=" + n.Path("kubelet.kubeconfig"),
		"--pod-manifest-path=", "--volume-plugin-dir=" + n.Path("volume-plugins"), "--fail-cgroupv1=false",
	} {
		if !slices.Contains(programs[0].Args, want) {
			t.Errorf("the kubelet has no %s: %q", want, programs[0].Args)
		}
	}
	if want := []string{"/c/kube-proxy", "--v=3", "--config=/r/_work/cluster/config/kube-proxy.yaml", "--hostname-override=node2"}; !slices.Equal(programs[1].Args, want) {
		t.Errorf("kube-proxy: %q", programs[1].Args)
	}
	for _, spec := range specs {
		hosts, err := os.ReadFile(spec.Node.Path("hosts"))
		if err != nil || !strings.Contains(string(hosts), "10.59.249.2 node1\n10.59.249.3 node2\n") {
			t.Errorf("%s knows the hosts %q, %v", spec.Node.Name, hosts, err)
		}
		for _, m := range spec.Folders[:4] {
			if !strings.HasPrefix(m.From, spec.Node.Dir) {
				t.Errorf("%s shares %s", spec.Node.Name, m.From)
			}
		}
	}
}

func testNodes(t *testing.T, count int) ([]*node.Node, []*node.Spec) {
	t.Helper()
	nodes := node.NewAll(t.TempDir(), netip.MustParsePrefix("10.59.249.0/24"), count)
	var specs []*node.Spec
	for _, n := range nodes {
		spec, err := n.Prepare("/bin", "pause", nodes)
		if err != nil {
			t.Fatal(err)
		}
		specs = append(specs, spec)
	}
	return nodes, specs
}
