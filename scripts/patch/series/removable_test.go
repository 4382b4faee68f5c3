// SPDX-License-Identifier: Apache-2.0

package series

import (
	"path/filepath"
	"testing"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/patch/base"
)

func TestEnsureRemovable(t *testing.T) {
	for name, tc := range map[string]struct {
		work func(t *testing.T, repo gitrepo.Repo)
		// refusal is what the refusal names, or empty.
		refusal string
	}{
		"nothing": {work: func(*testing.T, gitrepo.Repo) {}},
		"a changed file": {work: func(t *testing.T, repo gitrepo.Repo) { write(t, repo.Dir, "pkg/b/b.go", "package b // x\n") },
			refusal: "dirty tree"},
		"a stash": {work: func(t *testing.T, repo gitrepo.Repo) {
			write(t, repo.Dir, "pkg/b/b.go", "package b // x\n")
			git(t, repo, "stash", "--quiet")
		}, refusal: "stashed changes"},
		"a branch": {work: func(t *testing.T, repo gitrepo.Repo) { git(t, repo, "branch", "mine") }, refusal: "mine"},
		"a work tree of the tooling": {work: func(t *testing.T, repo gitrepo.Repo) {
			git(t, repo, "worktree", "add", "--quiet", "--detach", repo.Dir+"-verify")
		}},
		"a work tree elsewhere": {work: func(t *testing.T, repo gitrepo.Repo) {
			git(t, repo, "worktree", "add", "--quiet", "--detach", filepath.Join(t.TempDir(), "mine"))
		}, refusal: "mine"},
		"a work tree beside those of the tooling": {work: func(t *testing.T, repo gitrepo.Repo) {
			git(t, repo, "worktree", "add", "--quiet", "--detach", filepath.Join(filepath.Dir(repo.Dir), "try"))
		}, refusal: "try"},
		"commits that HEAD does not have": {work: func(t *testing.T, repo gitrepo.Repo) {
			commit(t, repo, "mine", map[string]string{"pkg/b/mine.go": "package b\n"})
			git(t, repo, "checkout", "--quiet", "--detach", base.ExportedRef)
		}, refusal: "checkout " + base.Branch},
	} {
		t.Run(name, func(t *testing.T) {
			repo, _ := exported(t)
			tc.work(t, repo)
			err := EnsureRemovable(t.Context(), repo)
			if tc.refusal != "" {
				wantRefusal(t, err, tc.refusal)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}
