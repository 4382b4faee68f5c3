// SPDX-License-Identifier: Apache-2.0

package series

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/testtree"
	"capacityv2.internal/scripts/patch/base"
)

// twoBranches is a repository with patch files that has two branches: in one, somebody has changed the first patch, in the
// other, which is checked out, the second one. The tree is as on the latter.
func twoBranches(t *testing.T, first, second map[string]string) (tree, ours gitrepo.Repo, dir string) {
	t.Helper()
	tree, from := exported(t)
	ours = gitrepo.Open(t.TempDir(), nil)
	dir = filepath.Join(ours.Dir, "patches")
	copyFiles(t, from, dir)
	git(t, ours, "init", "--quiet", "--initial-branch=main")
	save := func() {
		t.Helper()
		if _, err := export(t, tree, dir); err != nil {
			t.Fatal(err)
		}
		commit(t, ours, "export", nil)
	}
	amend := func(subject string, files map[string]string) {
		t.Helper()
		testtree.Write(t, tree.Dir, files)
		git(t, tree, "commit", "--quiet", "--all", "--fixup=:/"+subject)
		git(t, tree, "rebase", "--quiet", "--interactive", "--autosquash", base.Ref)
		save()
	}
	save()
	git(t, ours, "checkout", "--quiet", "-b", "first")
	amend("a: change the middle", first)
	git(t, ours, "checkout", "--quiet", "-b", "second", "main")
	if err := apply(t, tree, dir); err != nil {
		t.Fatal(err)
	}
	amend("b: add a function", second)
	return tree, ours, dir
}

var (
	otherLine     = map[string]string{"pkg/a/a.go": strings.Replace(numbered("one"), "line 20", "line zwanzig", 1)}
	otherFunction = map[string]string{"pkg/b/b.go": "package b\n\nfunc Better() {}\n"}
)

// TestMergeOfTwoBranches does what the messages say.
func TestMergeOfTwoBranches(t *testing.T) {
	for name, resolve := range map[string]func(t *testing.T, ours gitrepo.Repo, dir string) string{
		"theirs": func(t *testing.T, ours gitrepo.Repo, dir string) string {
			git(t, ours, "checkout", "--quiet", "--theirs", "patches/"+LockName)
			return LockName + " is of another series"
		},
		"ours": func(t *testing.T, ours gitrepo.Repo, dir string) string {
			git(t, ours, "checkout", "--quiet", "--ours", "patches/"+LockName)
			return LockName + " is of another series"
		},
		"not at all": func(t *testing.T, ours gitrepo.Repo, dir string) string {
			wantRefusal(t, Lint(dir, rules), LockName+" cannot be read", "run: make export")
			return LockName + " cannot be read"
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree, ours, dir := twoBranches(t, otherLine, otherFunction)
			if err := ours.Git(t.Context(), "merge", "first"); err == nil {
				t.Error("the merge has no conflict")
			}
			if conflicts, err := conflictingFiles(t.Context(), ours); err != nil || !slices.Equal(conflicts, []string{"patches/" + LockName}) {
				t.Errorf("conflicts in %q, error %v; want the lock alone", conflicts, err)
			}
			lock, err := os.ReadFile(filepath.Join(dir, LockName))
			if err != nil || !regexp.MustCompile(`<<<<<<< .*\n.+\n=======\n.+\n>>>>>>> `).Match(lock) {
				t.Errorf("error %v, lock\n%s\nwant a conflict of one line", err, lock)
			}
			found := resolve(t, ours, dir)
			wantRefusal(t, apply(t, tree, dir), found, "run: make export")
			if changed, err := export(t, tree, dir); err != nil || !slices.Equal(changed, []string{LockName}) {
				t.Errorf("changed %q, error %v; want the lock", changed, err)
			}
			for name, err := range map[string]error{"lint": Lint(dir, rules), "apply": apply(t, tree, dir)} {
				if err != nil {
					t.Errorf("%s after export: %v", name, err)
				}
			}
			for _, changed := range []map[string]string{otherLine, otherFunction} {
				for file, want := range changed {
					if got, err := tree.Output(t.Context(), "show", "HEAD:"+file); err != nil || got+"\n" != want {
						t.Errorf("%s is %q, error %v", file, got, err)
					}
				}
			}
		})
	}
}

// TestMergeThatConflicts has two branches of which one changes what the other needs. Git merges the files, and a person the
// patch.
func TestMergeThatConflicts(t *testing.T) {
	both := map[string]string{"pkg/a/a.go": strings.Replace(numbered("one"), "line 20", "line twenty\n// and more", 1)}
	tree, ours, dir := twoBranches(t, otherLine, both)
	_ = ours.Git(t.Context(), "merge", "first")
	for path, side := range map[string]string{LockName: "--ours", first0: "--theirs", "0002-b-add-a-function.patch": "--ours"} {
		_ = ours.Git(t.Context(), "checkout", "--quiet", side, "patches/"+path) // if it conflicts
	}
	wantRefusal(t, apply(t, tree, dir), "0002-b-add-a-function.patch does not apply (1 before it do): conflicts in pkg/a/a.go", "git am --continue", "then make export")
	if !tree.Applying() {
		t.Fatal("git am does not wait for a person")
	}
	if _, err := export(t, tree, dir); err == nil {
		t.Error("a half-done am is exported")
	}
	write(t, tree.Dir, "pkg/a/a.go", strings.Replace(numbered("one"), "line 20", "line zwanzig\n// and more", 1))
	git(t, tree, "add", "--all")
	git(t, tree, "am", "--continue")
	changed, err := export(t, tree, dir)
	if err != nil || !slices.Equal(changed, []string{"0002-b-add-a-function.patch", LockName}) {
		t.Errorf("changed %q, error %v; want the patch that was merged, and the lock", changed, err)
	}
	if err := apply(t, tree, dir); err != nil {
		t.Error(err)
	}
}

// TestApplyWithoutBlobs has a patch that git cannot merge: it has not what the patch changes.
func TestApplyWithoutBlobs(t *testing.T) {
	tree, dir := exported(t)
	damage(t, dir, first0, "-// one line 20", "-// one line 2x")
	blob, err := tree.Rev(t.Context(), base.Ref+":pkg/a/a.go")
	if err != nil {
		t.Fatal(err)
	}
	damage(t, dir, first0, "index "+blob, "index "+strings.Repeat("1", 40))
	wantRefusal(t, apply(t, tree, dir), first0+" does not apply (0 before it do)", "error: patch failed: pkg/a/a.go:", "git am waits in "+tree.Dir)
	git(t, tree, "am", "--abort")
	if err := EnsureSafe(t.Context(), tree); err != nil {
		t.Error(err)
	}
}

// TestApplyToCheckout has a base with more files, and so other commits than those of the lock.
func TestApplyToCheckout(t *testing.T) {
	_, dir := exported(t)
	tree := newTree(t, map[string]string{"pkg/a/a.go": numbered("one"), "pkg/b/b.go": "package b\n", "vendor/modules.txt": "x\n"})
	git(t, tree, "config", "--local", "capacityv2.base", version+" from a checkout")
	if err := apply(t, tree, dir); err != nil {
		t.Error(err)
	}
	damage(t, dir, first0, "1 file changed", "1  file changed") // what git am does not read
	wantRefusal(t, apply(t, tree, dir), "on the checkout in "+tree.Dir, "without KUBERNETES_SRC")
	_, err := export(t, tree, dir)
	wantRefusal(t, err, "the tree holds "+version+" from a checkout")
}
