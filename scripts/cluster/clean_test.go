// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/testtree"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch/base"
)

// TestCleanKeepsRecord checks that what has to be undone on the machine is not forgotten
// when the processes of a cluster have ended by themselves.
func TestCleanKeepsRecord(t *testing.T) {
	root := t.TempDir()
	ws := workspace.Workspace{Root: root, Work: filepath.Join(root, "_work"), Out: io.Discard}
	record := filepath.Join(ws.Cluster(), "state.json")
	testtree.Write(t, "", map[string]string{record: `{"id": "x", "mode": "full"}`})
	for _, force := range []bool{false, true} {
		if err := clean(t.Context(), ws, force); !run.IsRefusal(err) {
			t.Errorf("force %t: got error %v, want a refusal", force, err)
		}
		if _, err := os.Stat(record); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCleanKeepsRebase checks that only a rebase that has stopped for a person keeps
// make clean from removing what there is.
func TestCleanKeepsRebase(t *testing.T) {
	for name, tc := range map[string]struct {
		// tree is below _work, and finished whether its rebase was taken over.
		tree     string
		finished bool
		refuse   bool
	}{
		"stopped":    {tree: "p-v1.2.3", refuse: true},
		"forecast":   {tree: "p-forecast-v1.2.3"},
		"taken over": {tree: "p", finished: true},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			ws := workspace.Workspace{Root: root, Work: filepath.Join(root, "_work"), Out: io.Discard}
			tree := filepath.Join(ws.Work, tc.tree)
			if err := os.MkdirAll(tree, 0o755); err != nil {
				t.Fatal(err)
			}
			testtree.Write(t, filepath.Join(root, "patches", "p"), map[string]string{workspace.ProjectFile: "title: P\nmodule: p\n"})
			commands := [][]string{
				{"init", "--quiet", "--initial-branch=" + base.Branch},
				{"commit", "--quiet", "--allow-empty", "--message=base"},
				{"update-ref", base.Ref, "HEAD"},
				{"commit", "--quiet", "--allow-empty", "--message=patch"},
				{"update-ref", base.ExportedRef, "HEAD"},
			}
			if tc.finished {
				commands = append(commands, []string{"worktree", "add", "--quiet", "--detach", tree + "-verify"})
			}
			for _, args := range commands {
				if err := gitrepo.Open(tree, nil).Git(t.Context(), args...); err != nil {
					t.Fatal(err)
				}
			}
			err := clean(t.Context(), ws, false)
			_, statErr := os.Stat(tree)
			if kept := statErr == nil; run.IsRefusal(err) != tc.refuse || kept != tc.refuse {
				t.Errorf("refused and kept: %v, want %v; error %v", kept, tc.refuse, err)
			}
		})
	}
}
