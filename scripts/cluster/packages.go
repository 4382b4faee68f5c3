package cluster

import (
	"context"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/toolchain"
)

// need is something of the system that Go cannot build.
type need struct {
	program string
	// debian is the package that has it.
	debian string
	why    string
}

// needs returns what the mode asks of the machine.
func needs(m Mode) []need {
	ns := []need{
		{"bash", "bash", "hack/local-up-cluster.sh"},
		{"curl", "curl", "hack/local-up-cluster.sh"},
		{"openssl", "openssl", "hack/local-up-cluster.sh"},
		{"pgrep", "procps", "hack/local-up-cluster.sh"},
		{"ps", "procps", "hack/local-up-cluster.sh"},
	}
	if runtime.GOOS == "linux" {
		ns = append(ns, need{"ss", "iproute2", "hack/local-up-cluster.sh"})
	}
	if m.HasNode() {
		ns = append(ns,
			need{"ip", "iproute2", "the node's network"},
			need{"iptables", "iptables", "kube-proxy and the pod network"},
			need{"mount", "mount", "the kubelet"})
	}
	if m == ModeFull {
		ns = append(ns,
			need{"gcc", "gcc libc6-dev", "runc and the pause image"},
			need{"pkg-config", "pkg-config", "runc"},
			need{seccomp, "libseccomp-dev", "runc, which refuses pods without it"})
	}
	return ns
}

// seccomp stands for the C library of that name, which is not a program.
const seccomp = "libseccomp"

func has(ctx context.Context, program string) bool {
	if program == seccomp {
		return run.Cmd{Name: "pkg-config", Args: []string{"--exists", "libseccomp"}}.Run(ctx) == nil
	}
	_, err := exec.LookPath(program)
	return err == nil
}

// missing returns those that found does not find, and their Debian packages,
// sorted.
func missing(ns []need, found func(program string) bool) (programs, packages []string) {
	for _, n := range ns {
		if found(n.program) {
			continue
		}
		programs = append(programs, n.program+" (for "+n.why+")")
		packages = append(packages, strings.Fields(n.debian)...)
	}
	slices.Sort(packages)
	return programs, slices.Compact(packages)
}

// requireNeeds installs what is missing, where we are root on a Debian; anywhere
// else it refuses with the command that installs it.
func requireNeeds(ctx context.Context, m Mode, s *progress.Step) error {
	found := func(p string) bool { return has(ctx, p) }
	programs, packages := missing(needs(m), found)
	if len(programs) == 0 {
		return nil
	}
	refusal := progress.Refuse("missing on this machine: "+strings.Join(programs, ", "),
		"all of them", "apt-get install -y --no-install-recommends "+strings.Join(packages, " "))
	if err := toolchain.InstallPackages(ctx, s, packages...); progress.IsRefusal(err) {
		return refusal // says what each is for
	} else if err != nil {
		return err
	}
	if programs, _ := missing(needs(m), found); len(programs) > 0 {
		return refusal
	}
	return nil
}
