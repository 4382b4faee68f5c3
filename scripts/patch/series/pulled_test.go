// SPDX-License-Identifier: Apache-2.0

package series

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/patch/base"
)

const newer = "v1.37.3"

// copyFiles makes to what from is.
func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// TestExportKeepsWhatWasPulled has patch files that somebody else has exported since the tree was made.
func TestExportKeepsWhatWasPulled(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(t *testing.T, theirs gitrepo.Repo)
		version string
		want    string
	}{
		"a changed patch": {func(t *testing.T, theirs gitrepo.Repo) {
			write(t, theirs.Dir, "pkg/b/b.go", "package b\n\nfunc Better() {}\n")
			git(t, theirs, "commit", "--quiet", "--all", "--amend", "--no-edit")
		}, version, "0002-b-add-a-function.patch"},
		"a new patch": {func(t *testing.T, theirs gitrepo.Repo) {
			commit(t, theirs, message("c: theirs", "feature"), map[string]string{"pkg/c/c.go": "package c\n"})
		}, version, "0003-c-theirs.patch"},
		"a removed patch": {func(t *testing.T, theirs gitrepo.Repo) {
			git(t, theirs, "rebase", "--quiet", "--onto", "HEAD~2", "HEAD~1")
		},
			version, "0001-a-change-the-middle.patch"},
		"another base": {func(t *testing.T, theirs gitrepo.Repo) {
			git(t, theirs, "config", "--local", "capacityv2.base", newer+" from modules")
		},
			newer, "the tree holds " + version},
	} {
		t.Run(name, func(t *testing.T) {
			mine, dir := exported(t)
			commit(t, mine, message("d: mine", "feature"), map[string]string{"pkg/d/d.go": "package d\n"})
			theirs, pulled := exported(t)
			tc.change(t, theirs)
			if _, err := exportFor(t, theirs, pulled, tc.version, rules); err != nil {
				t.Fatal(err)
			}
			copyFiles(t, pulled, dir)
			before, commits := snapshot(t, dir), head(t, mine)
			_, err := exportFor(t, mine, dir, tc.version, rules)
			if snapshot(t, dir) != before || head(t, mine) != commits {
				t.Error("the patch files or the commits changed")
			}
			wantRefusal(t, err, tc.want, "make apply")
			if tc.version == newer {
				return
			}

			// What it says to run.
			if err := rebaseOwn(t, mine, dir); err != nil {
				t.Fatal(err)
			}
			changed, err := export(t, mine, dir)
			if err != nil || len(changed) != 3 || !strings.HasSuffix(changed[0], "-d-mine.patch") {
				t.Errorf("changed %q, error %v; want my patch, the list and the lock", changed, err)
			}
		})
	}
}

// TestExportKeepsUnlistedPatches has a patch file of somebody's that neither the list nor git knows.
func TestExportKeepsUnlistedPatches(t *testing.T) {
	repo, dir := exported(t)
	theirs, pulled := exported(t)
	commit(t, theirs, message("c: theirs", "feature"), map[string]string{"pkg/c/c.go": "package c\n"})
	if _, err := export(t, theirs, pulled); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(pulled, "0003-c-theirs.patch"))
	if err != nil {
		t.Fatal(err)
	}
	extra := filepath.Join(dir, "0003-extra.patch")
	write(t, dir, "0003-extra.patch", string(b))
	_, err = export(t, repo, dir)
	for _, err := range []error{err, Lint(dir, rules)} {
		wantRefusal(t, err, extra+" is not listed", "git am --3way "+extra)
	}

	// What both say to run.
	git(t, repo, "am", "--quiet", "--3way", extra)
	if err := os.Remove(extra); err != nil {
		t.Fatal(err)
	}
	if _, err := export(t, repo, dir); err != nil || snapshot(t, dir) != snapshot(t, pulled) {
		t.Errorf("the patch files are\n%s\nerror %v", snapshot(t, dir), err)
	}
}

// TestExportToAnotherBase has patch files of the base that a rebase leaves, and upstream has taken the last patch.
func TestExportToAnotherBase(t *testing.T) {
	repo, dir := exported(t)
	git(t, repo, "config", "--local", "capacityv2.base", newer+" from modules")
	git(t, repo, "update-ref", base.ExportedRef, base.Ref)
	git(t, repo, "reset", "--quiet", "--hard", "HEAD~1")
	if _, err := exportFor(t, repo, dir, newer, rules); err != nil {
		t.Fatal(err)
	}
	if err := Lint(dir, rules); err != nil {
		t.Error(err)
	}
}

func TestExportOverAMalformedPatch(t *testing.T) {
	repo, dir := exported(t)
	write(t, dir, "0001-a-change-the-middle.patch", "no patch\n")
	_, err := export(t, repo, dir)
	wantRefusal(t, err, "malformed patch 0001", "git checkout")
	if strings.Contains(err.Error(), "make export") {
		t.Errorf("it advises what has just failed:\n%v", err)
	}
}
