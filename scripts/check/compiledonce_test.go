// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
)

func TestCompareBuildIDs(t *testing.T) {
	tree := []toolchain.BuildID{{Package: "unsafe"}, {Package: "a", ID: "1"}, {Package: "b", ID: "2"}, {Package: "c", ID: "3"}}
	if err := compareBuildIDs(tree, tree[:2]); err != nil {
		t.Error(err)
	}
	ours := []toolchain.BuildID{{Package: "unsafe"}, {Package: "a", ID: "1"}, {Package: "b", ID: "20"}, {Package: "c", ID: "30"}, {Package: "d", ID: "4"}}
	if err := compareBuildIDs(tree, ours); err == nil || !strings.Contains(err.Error(), "3 of 5 packages") || !strings.Contains(err.Error(), "the first of them b\n") {
		t.Errorf("got %v, want that b differs first, and two more", err)
	}
}

func TestRefuseReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "go.work")
	for text, refused := range map[string]bool{"go 1.26\n": false, "go 1.26\n\nreplace a => a v1.0.0\n": true} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := refuseReplace(path); run.IsRefusal(err) != refused {
			t.Errorf("%q: error %v, want a refusal: %t", text, err, refused)
		}
	}
	if err := refuseReplace("../../" + workspace.GoWork); err != nil {
		t.Error(err)
	}
}
