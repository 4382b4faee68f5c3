package cluster

import (
	"context"
	"runtime"

	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/tools"
)

// needs are the programs of the system that the mode asks for: those that Go cannot
// build.
func needs(m Mode) []string {
	programs := []string{"bash", "curl", "openssl", "pgrep", "ps"} // hack/local-up-cluster.sh
	if runtime.GOOS == "linux" {
		programs = append(programs, "ss") // the same
	}
	if m.HasNode() {
		programs = append(programs, "ip", "iptables", "mount") // the node's network, kube-proxy, the kubelet
	}
	if m == ModeFull {
		// For the pause image and runc, which refuses pods without Seccomp.
		programs = append(programs, "gcc", "pkg-config", tools.Seccomp)
	}
	return programs
}

// Tools builds the programs that the plan's mode needs.
func (p *Plan) Tools(ctx context.Context, s *progress.Step) error {
	needed := []tools.Tool{tools.Etcd, tools.Certificates}
	if p.Mode == ModeFull {
		needed = append(needed, tools.Node...)
	}
	return tools.Build(ctx, p.ws, s, needed...)
}
