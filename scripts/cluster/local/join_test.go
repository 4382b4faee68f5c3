// SPDX-License-Identifier: Apache-2.0

package local

import (
	"net/netip"
	"slices"
	"testing"

	"capacityv2.internal/scripts/cluster/node"
	"capacityv2.internal/scripts/ground/workspace"
)

// TestJoiningPrograms checks that what a node that joins runs is its own.
func TestJoiningPrograms(t *testing.T) {
	t.Setenv("LOG_LEVEL", "")
	ws := workspace.Workspace{Root: "/r", Work: "/r/_work"}
	s := script{ws: ws, options: Options{Components: "/c"}}
	n := node.New("/d", netip.MustParsePrefix("10.59.249.0/24"), 2)
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
}
