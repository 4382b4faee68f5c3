// SPDX-License-Identifier: Apache-2.0

package local

import (
	"path/filepath"
	"reflect"
	"testing"

	"capacityv2.internal/scripts/ground/testtree"
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
	testtree.Write(t, "", map[string]string{statePath(ws): `{"id": "abc`})
	if _, err := loadState(ws); err == nil {
		t.Error("a half-written state file passed for no cluster")
	}
}
