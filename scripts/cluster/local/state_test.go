// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"capacityv2.internal/scripts/cluster/machine"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
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
	st := &state{ID: "abc123", Mode: ModeFull, Nodes: 2, Gates: "A=true", Ready: true, Components: "/c", Folders: []string{"/opt/cni"}, ws: ws}
	if err := st.save(); err != nil {
		t.Fatal(err)
	}
	got, err := loadState(ws)
	if err != nil || !reflect.DeepEqual(got, st) {
		t.Errorf("read back %+v, %v\nwant %+v", got, err, st)
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

// TestUnknownModeIsRefused checks that nothing is taken away for a cluster of another version
// of the tooling, which might have been in folders that a kubelet of the machine has by now.
func TestUnknownModeIsRefused(t *testing.T) {
	ws := testWorkspace(t)
	kubelet := filepath.Join(t.TempDir(), "kubelet")
	volume := filepath.Join(kubelet, "pods", "1", "volume")
	if err := os.MkdirAll(volume, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(ws.Cluster(), 0o755); err != nil {
		t.Fatal(err)
	}
	content := fmt.Sprintf(`{"id": "abc123", "mode": "host", "ready": true, "trees": [%q], "keepRules": true,
		"processes": [{"name": "local-up-cluster.sh", "pid": 1, "start": "another boot/1", "mark": "abc123"}]}`, kubelet)
	if err := os.WriteFile(statePath(ws), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := down(t, ws, ""); !run.IsRefusal(err) || !strings.Contains(err.Error(), statePath(ws)) {
		t.Errorf("got %v, want a refusal that names the file", err)
	}
	for _, path := range []string{volume, statePath(ws)} {
		if !machine.Exists(path) {
			t.Errorf("%s is gone", path)
		}
	}
}
