// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"capacityv2.internal/scripts/cluster/machine"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
)

// TestDownTakesAwayWhatIsRecorded stands for an `up` that was killed: what it had
// recorded is all that is known.
func TestDownTakesAwayWhatIsRecorded(t *testing.T) {
	runBeside(t)
	ws := testWorkspace(t)
	groupsAtTop = func(string) []string {
		if held, err := lock(ws); err == nil {
			t.Error("a make up could begin meanwhile")
			held.Close()
		}
		return nil
	}
	host := t.TempDir()
	folders := machine.MissingFolders(filepath.Join(host, "opt", "cni", "bin"))
	used := filepath.Join(host, "used")
	for _, d := range append(folders, filepath.Join(used, "by somebody"), placesOf(ws).logs(), placesOf(ws).etcd()) {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("sleep", "60")
	cmd.Env = []string{machine.MarkVariable + "=abc123"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }()
	st := &state{ID: "abc123", Mode: ModeControlPlane, Folders: append(folders, used), ws: ws}
	if err := st.save(); err != nil {
		t.Fatal(err)
	}
	if s, err := StatusOf(ws); !s.Recorded || !s.Alive || s.Running || err != nil {
		t.Errorf("%+v, %v, want processes of a cluster that never ran", s, err)
	}

	for _, time := range []string{"first", "second"} {
		if err := down(t, ws, ""); err != nil {
			t.Fatalf("%s time: %v", time, err)
		}
	}
	if machine.Alive("abc123") {
		t.Error("a process lives on")
	}
	if machine.Exists(filepath.Join(host, "opt")) {
		t.Error("a folder that was made is still there")
	}
	if !machine.Exists(filepath.Join(used, "by somebody")) {
		t.Error("removed a folder that somebody else uses")
	}
	if machine.Exists(placesOf(ws).etcd()) || !machine.Exists(placesOf(ws).logs()) || machine.Exists(statePath(ws)) {
		t.Error("want the logs, and nothing else, in the cluster's folder")
	}
}

func down(t *testing.T, ws workspace.Workspace, id string) error {
	t.Helper()
	do := func(ctx context.Context, s *run.Step) error { return Down(ctx, ws, id, s) }
	// The context of a test has ended when its cleanup begins, and then nobody would wait for the processes.
	return run.NewReporter(t.Output(), "down", ws.Logs()).Run(context.WithoutCancel(t.Context()), run.Task{Name: "down", Do: do})
}

// runBeside lets control groups be all that there are.
func runBeside(t *testing.T, groups ...string) {
	t.Helper()
	before := groupsAtTop
	groupsAtTop = func(string) []string { return groups }
	t.Cleanup(func() { groupsAtTop = before })
}

// TestDownBesideAnotherCluster ends one of two clusters: the folders that both use stay.
func TestDownBesideAnotherCluster(t *testing.T) {
	for _, tc := range []struct {
		groups []string
		stays  bool
	}{
		{nil, false},
		{[]string{"/c/capacityv2-abc123", "/c/capacityv2-abc123-node2", "/c/capacityv2-probe-7"}, false},
		{[]string{"/c/capacityv2-other0"}, true},
	} {
		runBeside(t, tc.groups...)
		ws := testWorkspace(t)
		folder := filepath.Join(t.TempDir(), "kubelet")
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		st := &state{ID: "abc123", Mode: ModeFull, Folders: []string{folder}, ws: ws}
		if err := st.save(); err != nil {
			t.Fatal(err)
		}
		if err := down(t, ws, ""); err != nil {
			t.Fatal(err)
		}
		if stays := machine.Exists(folder); stays != tc.stays {
			t.Errorf("beside %v, the folder stays: %t", tc.groups, stays)
		}
	}
}

func TestDownRefusesBesideUp(t *testing.T) {
	ws := testWorkspace(t)
	held, err := lock(ws)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := (&state{ID: "abc123", Mode: ModeFull, ws: ws}).save(); err != nil {
		t.Fatal(err)
	}
	if err := down(t, ws, ""); !run.IsRefusal(err) || !machine.Exists(statePath(ws)) {
		t.Errorf("%v, want a refusal", err)
	}
}
