// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestDirty(t *testing.T) {
	repo := Open(t.TempDir(), nil)
	git := func(args ...string) {
		t.Helper()
		if err := repo.Git(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	put := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(repo.Dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "--quiet")
	for _, name := range []string{"b.go", "c.go", "d.go"} {
		put(name, name)
	}
	git("add", ".")
	git("commit", "--quiet", "--message=base")
	if got, err := repo.Dirty(t.Context()); err != nil || got != nil {
		t.Errorf("clean tree: %q, %v", got, err)
	}
	put("b.go", "changed")
	put("a b.go", "new")
	git("rm", "--quiet", "c.go")
	git("mv", "d.go", "e.go")
	got, err := repo.Dirty(t.Context())
	if want := []string{"a b.go", "b.go", "c.go", "d.go", "e.go"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, want %q; %v", got, want, err)
	}
}

// TestApplying has a second work tree, in which git keeps its state elsewhere.
func TestApplying(t *testing.T) {
	first := Open(filepath.Join(t.TempDir(), "first"), nil)
	second := Open(filepath.Join(t.TempDir(), "second"), nil)
	patch := filepath.Join(t.TempDir(), "1.patch")
	for path, content := range map[string]string{filepath.Join(first.Dir, "a"): "a\n", patch: "From: A <a@example.org>\nSubject: x\n\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-b\n+c\n"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}, {"commit", "--quiet", "--message=base"}, {"worktree", "add", "--quiet", "--detach", second.Dir}} {
		if err := first.Git(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
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
		if err := LeaveRepository(); err != nil {
			t.Fatal(err)
		}
		if _, found := os.LookupEnv(name); found != kept {
			t.Errorf("%s is there: %t, want %t", name, found, kept)
		}
	}
}
