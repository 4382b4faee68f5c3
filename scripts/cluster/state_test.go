package cluster

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"capacityv2.internal/scripts/machine"
	"capacityv2.internal/scripts/workspace"
)

func testWorkspace(t *testing.T) workspace.Workspace {
	t.Helper()
	root := t.TempDir()
	return workspace.Workspace{Root: root, Work: filepath.Join(root, "_work")}
}

func TestStateRoundTrip(t *testing.T) {
	ws := testWorkspace(t)
	if st, err := loadState(ws); st != nil || err != nil {
		t.Fatalf("without a file: %v, %v", st, err)
	}
	st := &state{ID: "abc123", Mode: ModeFull, Gates: "A=true", Started: time.Unix(1, 0).UTC(), Ready: true,
		Processes: []machine.Process{{Name: "node1", PID: 7, Start: "boot/9", Mark: "abc123"}},
		Cgroups:   []string{"/sys/fs/cgroup/capacityv2-abc123"}, Folders: []string{"/opt/cni"}, Link: "cap-abc123"}
	st.set("/proc/sys/kernel/panic", "1\n")
	st.set("/proc/sys/kernel/panic", "10\n") // ours by now
	if err := st.save(ws); err != nil {
		t.Fatal(err)
	}
	got, err := loadState(ws)
	if err != nil || !reflect.DeepEqual(got, st) {
		t.Errorf("read back %+v, %v\nwant %+v", got, err, st)
	}
	if got.Settings["/proc/sys/kernel/panic"] != "1\n" {
		t.Errorf("settings: %v, want the first content", got.Settings)
	}
}

func TestBrokenStateIsAnError(t *testing.T) {
	ws := testWorkspace(t)
	if err := os.MkdirAll(ws.Cluster(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(statePath(ws), []byte(`{"id": "abc`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := loadState(ws); err == nil {
		t.Error("a half-written state file passed for no cluster")
	}
}

func TestMissingFolders(t *testing.T) {
	exists := func(p string) bool { return p == "/" || p == "/opt" }
	got := machine.MissingFolders("/opt/cni/bin", exists)
	if want := []string{"/opt/cni", "/opt/cni/bin"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := machine.MissingFolders("/opt", exists); got != nil {
		t.Errorf("for an existing one: %v", got)
	}
}
