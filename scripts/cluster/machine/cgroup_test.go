// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestMakeGroup makes a group on this machine, and removes it. Its name is of this run alone: a run
// that was killed leaves its group, and what holds the name makes no group.
func TestMakeGroup(t *testing.T) {
	if obstacle := NodeObstacle(); obstacle != "" {
		t.Skip(obstacle)
	}
	name := fmt.Sprintf("capacityv2-probe-test-%d-%d", os.Getpid(), time.Now().UnixNano())
	t.Cleanup(func() { _ = RemoveGroups(context.Background(), name) })
	if err := MakeGroup(name); err != nil {
		t.Fatal(err)
	}
	groups := Groups(name)
	if len(groups) == 0 {
		t.Fatal("there is no group")
	}
	if err := os.Mkdir(filepath.Join(groups[0], "pods"), 0o755); err != nil {
		t.Error(err)
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		want, err := os.ReadFile(filepath.Join(cgroupRoot, "cpuset", file))
		if err != nil {
			continue // version 2
		}
		if got, err := os.ReadFile(filepath.Join(cgroupRoot, "cpuset", name, file)); err != nil || string(got) != string(want) {
			t.Errorf("%s: %q, %v, want %q", file, got, err, want)
		}
	}
	if err := RemoveGroups(t.Context(), name); err != nil || len(Groups(name)) > 0 {
		t.Errorf("left: %v, %v", Groups(name), err)
	}
}
