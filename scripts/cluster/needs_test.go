package cluster

import (
	"slices"
	"testing"

	"capacityv2.internal/scripts/tools"
)

func TestMissing(t *testing.T) {
	absent := map[string]bool{"ip": true, "ss": true, "gcc": true, tools.Seccomp: true}
	programs, packages := missing(needs(ModeFull), func(p string) bool { return !absent[p] })
	if len(programs) != len(absent) {
		t.Errorf("programs: %v", programs)
	}
	// ip and ss are of one package.
	if want := []string{"gcc", "iproute2", "libc6-dev", "libseccomp-dev"}; !slices.Equal(packages, want) {
		t.Errorf("packages: %v, want %v", packages, want)
	}
	for _, n := range needs(ModeControlPlane) {
		if n.program == tools.Seccomp || n.program == "gcc" {
			t.Errorf("the control plane alone needs %s", n.program)
		}
	}
}
