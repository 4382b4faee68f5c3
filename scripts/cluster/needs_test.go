package cluster

import (
	"slices"
	"testing"

	"capacityv2.internal/scripts/tools"
)

func TestNeeds(t *testing.T) {
	for mode, want := range map[Mode]struct{ network, compiler bool }{
		ModeFull: {true, true}, ModeHost: {true, false}, ModeControlPlane: {false, false},
	} {
		programs := needs(mode)
		if got := slices.Contains(programs, "iptables"); got != want.network {
			t.Errorf("%s needs iptables: %t", mode, got)
		}
		for _, p := range []string{"gcc", tools.Seccomp} {
			if got := slices.Contains(programs, p); got != want.compiler {
				t.Errorf("%s needs %s: %t", mode, p, got)
			}
		}
	}
}
