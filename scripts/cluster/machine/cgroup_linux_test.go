package machine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestControllersStayOn gives files of a folder as the root of version 2, which few machines let a
// test change.
func TestControllersStayOn(t *testing.T) {
	for name, tc := range map[string]struct{ has, passed, written string }{
		"some are missing":  {"cpuset cpu io memory pids\n", "memory\n", "+cpu +cpuset +pids"},
		"none is missing":   {"cpu memory\n", "memory cpu\n", "memory cpu\n"},
		"nobody needs more": {"io misc\n", "\n", "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			h := hierarchy{path: t.TempDir(), unified: true}
			passed := filepath.Join(h.path, "cgroup.subtree_control")
			for path, content := range map[string]string{filepath.Join(h.path, "cgroup.controllers"): tc.has, passed: tc.passed} {
				if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := h.makeGroup("g"); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(h.path, "g", "pods", "1"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := removeGroup(filepath.Join(h.path, "g")); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(passed); err != nil || string(got) != tc.written {
				t.Errorf("%s holds %q, %v, want %q", passed, got, err, tc.written)
			}
			if Exists(filepath.Join(h.path, "g")) {
				t.Error("the group is still there")
			}
		})
	}
}

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
	if len(Groups(name)) == 0 {
		t.Error("there is no group")
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
