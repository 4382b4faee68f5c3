// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/testtree"
)

// TestDetachLoops has a loop device of a file, and one on top of it, as a kubelet makes for a
// raw block volume. The first one detaches itself when nothing is on top of it any more. The one of a file
// beside them stays. The machine has no losetup, as one on which volumes are folders.
func TestDetachLoops(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skip("no loop devices: ", err)
	}
	losetup := func(arguments ...string) string {
		t.Helper()
		out, err := exec.Command("losetup", arguments...).CombinedOutput()
		if err != nil {
			t.Fatalf("losetup %v: %v: %s", arguments, err, out)
		}
		return string(out)
	}
	attach := func(file string) string { return strings.TrimSpace(losetup("--find", "--show", file)) }
	dir, content := t.TempDir(), strings.Repeat("x", 1<<20)
	volume, beside := filepath.Join(dir, "shared/pools/image"), filepath.Join(dir, "beside")
	testtree.Write(t, "", map[string]string{volume: content, beside: content})
	below := attach(volume)
	top, other := attach(below), attach(beside)
	t.Cleanup(func() {
		for _, device := range []string{top, below, other} {
			_ = exec.Command("losetup", "--detach", device).Run()
		}
	})
	losetup("--detach", below)
	path := os.Getenv("PATH")
	t.Setenv("PATH", "")
	if err := DetachLoops(filepath.Join(dir, "shared")); err != nil {
		t.Error(err)
	}
	t.Setenv("PATH", path)
	left := strings.Fields(losetup("--list", "--noheadings", "--output", "NAME"))
	for device, want := range map[string]bool{below: false, top: false, other: true} {
		got := false
		for _, l := range left {
			got = got || l == device
		}
		if got != want {
			t.Errorf("%s is attached: %t, want %t; left: %v", device, got, want, left)
		}
	}
}
