package cluster

import (
	"context"
	"runtime"
	"slices"
	"strings"

	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/tools"
)

// need is something of the system that Go cannot build.
type need struct {
	program, why string
}

// needs returns what the mode asks of the machine.
func needs(m Mode) []need {
	ns := []need{
		{"bash", "hack/local-up-cluster.sh"},
		{"curl", "hack/local-up-cluster.sh"},
		{"openssl", "hack/local-up-cluster.sh"},
		{"pgrep", "hack/local-up-cluster.sh"},
		{"ps", "hack/local-up-cluster.sh"},
	}
	if runtime.GOOS == "linux" {
		ns = append(ns, need{"ss", "hack/local-up-cluster.sh"})
	}
	if m.HasNode() {
		ns = append(ns,
			need{"ip", "the node's network"},
			need{"iptables", "kube-proxy and the pod network"},
			need{"mount", "the kubelet"})
	}
	if m == ModeFull {
		ns = append(ns,
			need{"gcc", "runc and the pause image"},
			need{"pkg-config", "runc"},
			need{tools.Seccomp, "runc, which refuses pods without it"})
	}
	return ns
}

// missing returns those that found does not find, and their Debian packages,
// sorted.
func missing(ns []need, found func(program string) bool) (programs, packages []string) {
	for _, n := range ns {
		if found(n.program) {
			continue
		}
		programs = append(programs, n.program+" (for "+n.why+")")
		packages = append(packages, tools.Packages(n.program)...)
	}
	slices.Sort(packages)
	return programs, slices.Compact(packages)
}

// requireNeeds installs what is missing, where we are root on a Debian; anywhere
// else it refuses with the command that installs it.
func requireNeeds(ctx context.Context, m Mode, s *progress.Step) error {
	found := func(p string) bool { return tools.Has(ctx, p) }
	programs, packages := missing(needs(m), found)
	if len(programs) == 0 {
		return nil
	}
	refusal := progress.Refuse("missing on this machine: "+strings.Join(programs, ", "),
		"all of them", "apt-get install -y --no-install-recommends "+strings.Join(packages, " "))
	if err := tools.InstallPackages(ctx, s, packages...); progress.IsRefusal(err) {
		return refusal // says what each is for
	} else if err != nil {
		return err
	}
	if programs, _ := missing(needs(m), found); len(programs) > 0 {
		return refusal
	}
	return nil
}

// Tools builds the programs that the plan's mode needs.
func (p *Plan) Tools(ctx context.Context, s *progress.Step) error {
	needed := []tools.Tool{tools.Etcd, tools.Certificates}
	if p.Mode == ModeFull {
		needed = append(needed, tools.Node...)
	}
	return tools.Build(ctx, p.ws, s, needed...)
}
