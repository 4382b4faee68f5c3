package cluster

import (
	"slices"
	"strings"
	"testing"
)

func TestMissing(t *testing.T) {
	absent := map[string]bool{"ip": true, "ss": true, "gcc": true, seccomp: true}
	programs, packages := missing(needs(ModeFull), func(p string) bool { return !absent[p] })
	if len(programs) != len(absent) {
		t.Errorf("programs: %v", programs)
	}
	// ip and ss are of one package.
	if want := []string{"gcc", "iproute2", "libc6-dev", "libseccomp-dev"}; !slices.Equal(packages, want) {
		t.Errorf("packages: %v, want %v", packages, want)
	}
	for _, n := range needs(ModeControlPlane) {
		if strings.Contains(n.debian, "seccomp") || n.program == "gcc" {
			t.Errorf("the control plane alone needs %s", n.program)
		}
	}
}
