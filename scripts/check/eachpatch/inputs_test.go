// SPDX-License-Identifier: Apache-2.0

package eachpatch

import (
	"path/filepath"
	"slices"
	"testing"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/testtree"
	"capacityv2.internal/scripts/ground/workspace"
)

// TestOtherInputs: a project is verified again when anything changes that it compiles
// against.
func TestOtherInputs(t *testing.T) {
	root := t.TempDir()
	ws := workspace.Workspace{Root: root, Work: filepath.Join(root, "_work")}
	for _, name := range []string{"ours", "theirs"} {
		testtree.Write(t, root, map[string]string{"patches/" + name + "/project.yaml": "title: " + name + "\nmodule: " + name + "\n"})
	}
	project, err := ws.Project("ours")
	if err != nil {
		t.Fatal(err)
	}
	tree := gitrepo.Open(filepath.Join(ws.Work, "theirs"), nil)
	before := []string{}
	for _, change := range []struct{ path, content string }{
		{"_work/theirs/x.go", "package x\n"},
		{"_work/theirs/x.go", "package y\n"},
		{"patches/ours/go.work", "go 1.26\n"},
		{"patches/ours/go.work.sum", "x v1.0.0 h1:x=\n"},
		{"patches/ours/go.work.sum", "x v1.0.0 h1:y=\n"},
	} {
		testtree.Write(t, root, map[string]string{change.path: change.content})
		testtree.Commit(t, tree, "x", nil)
		inputs, err := otherInputs(t.Context(), ws, project, nil)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(inputs, before) {
			t.Errorf("%s is now %q, and the inputs are the same: %q", change.path, change.content, inputs)
		}
		before = inputs
	}
}
