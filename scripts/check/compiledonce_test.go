package check

import (
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/toolchain"
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
