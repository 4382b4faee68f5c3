// SPDX-License-Identifier: Apache-2.0

package gitrepo_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/testtree"
)

func TestDirty(t *testing.T) {
	repo := gitrepo.Open(t.TempDir(), nil)
	git := func(args ...string) {
		t.Helper()
		if err := repo.Git(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	testtree.Commit(t, repo, "base", map[string]string{"b.go": "b", "c.go": "c", "d.go": "d"})
	if got, err := repo.Dirty(t.Context()); err != nil || got != nil {
		t.Errorf("clean tree: %q, %v", got, err)
	}
	testtree.Write(t, repo.Dir, map[string]string{"b.go": "changed", "a b.go": "new"})
	git("rm", "--quiet", "c.go")
	git("mv", "d.go", "e.go")
	got, err := repo.Dirty(t.Context())
	if want := []string{"a b.go", "b.go", "c.go", "d.go", "e.go"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, want %q; %v", got, want, err)
	}
}

// TestApplying has a second work tree, in which git keeps its state elsewhere.
func TestApplying(t *testing.T) {
	first := gitrepo.Open(filepath.Join(t.TempDir(), "first"), nil)
	second := gitrepo.Open(filepath.Join(t.TempDir(), "second"), nil)
	patch := filepath.Join(t.TempDir(), "1.patch")
	testtree.Write(t, "", map[string]string{patch: "From: A <a@example.org>\nSubject: x\n\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-b\n+c\n"})
	testtree.Commit(t, first, "base", map[string]string{"a": "a\n"})
	if err := first.Git(t.Context(), "worktree", "add", "--quiet", "--detach", second.Dir); err != nil {
		t.Fatal(err)
	}
	if second.Applying() {
		t.Error("nothing is applied yet")
	}
	if err := second.Git(t.Context(), "am", patch); err == nil {
		t.Fatal("the patch applies")
	}
	if first.Applying() || !second.Applying() {
		t.Errorf("half-done in the first work tree: %t, in the second: %t; want it in the second", first.Applying(), second.Applying())
	}
}

func TestLeaveRepository(t *testing.T) {
	for name, kept := range map[string]bool{"GIT_DIR": false, "GIT_INDEX_FILE": false, "GIT_AUTHOR_NAME": true, "GIT_SSH_COMMAND": true} {
		t.Setenv(name, "x")
		if err := gitrepo.LeaveRepository(); err != nil {
			t.Fatal(err)
		}
		if _, found := os.LookupEnv(name); found != kept {
			t.Errorf("%s is there: %t, want %t", name, found, kept)
		}
	}
}
