// SPDX-License-Identifier: Apache-2.0

package local

import (
	"slices"
	"testing"

	"capacityv2.internal/scripts/ground/toolchain"
)

func TestNeeds(t *testing.T) {
	for mode, want := range map[Mode]bool{ModeFull: true, ModeControlPlane: false} {
		programs := needs(mode)
		for _, p := range []string{"iptables", "gcc", toolchain.Seccomp} {
			if got := slices.Contains(programs, p); got != want {
				t.Errorf("%s needs %s: %t", mode, p, got)
			}
		}
		for _, p := range []string{"kubelet", "kube-proxy"} {
			if got := slices.Contains((&Plan{Mode: mode}).Components(), p); got != want {
				t.Errorf("%s runs %s: %t", mode, p, got)
			}
		}
	}
}

func TestRequirePlainPath(t *testing.T) {
	for path, ok := range map[string]bool{"/home/a/k8s_v2-x.y": true, "/home/a b": false, `/home/a"b`: false, "/home/$a": false} {
		if err := requirePlainPath(path); (err == nil) != ok {
			t.Errorf("%s: %v", path, err)
		}
	}
}
