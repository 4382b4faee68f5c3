// SPDX-License-Identifier: Apache-2.0

package series

import (
	"context"
	"slices"
	"testing"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
)

func rebase(t *testing.T, repo gitrepo.Repo, dir string) error {
	t.Helper()
	return step(t, func(ctx context.Context, s *run.Step) error {
		return Rebase(ctx, repo, dir, "make rebase BASE="+newer, s)
	})
}

// TestRebaseStopsAtAConflict merges by hand as the refusal says, and then the series is that of the newer base.
func TestRebaseStopsAtAConflict(t *testing.T) {
	for name, tc := range map[string]struct {
		person func(t *testing.T, repo gitrepo.Repo)
		want   []string
	}{
		"merged": {func(t *testing.T, repo gitrepo.Repo) {
			git(t, repo, "checkout", "--quiet", "--theirs", "pkg/a/a.go")
			git(t, repo, "add", "pkg/a/a.go")
			git(t, repo, "am", "--continue")
		}, []string{first0, LockName}},
		"left out": {func(t *testing.T, repo gitrepo.Repo) { git(t, repo, "am", "--skip") },
			[]string{"0001-b-add-a-function.patch", ListName, LockName, first0 + " (removed)", "0002-b-add-a-function.patch (removed)"}},
	} {
		t.Run(name, func(t *testing.T) {
			repo, dir := newerBase(t, conflicting)
			wantRefusal(t, rebase(t, repo, dir), first0+" does not apply (0 before it do): conflicts in pkg/a/a.go", "git am --continue", "make rebase BASE="+newer+" again")
			if !repo.Applying() {
				t.Error("git am does not wait for a person")
			}
			wantRefusal(t, rebase(t, repo, dir), "half-done")
			tc.person(t, repo)
			if err := rebase(t, repo, dir); err != nil {
				t.Error(err)
			}
			if changed, err := exportFor(t, repo, dir, newer, rules); err != nil || !slices.Equal(changed, tc.want) {
				t.Errorf("changed %q, error %v; want %q", changed, err, tc.want)
			}
			if err := Lint(dir, rules); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRebaseOfOtherFiles has somebody change a patch while a rebase waits.
func TestRebaseOfOtherFiles(t *testing.T) {
	repo, dir := newerBase(t, conflicting)
	wantRefusal(t, rebase(t, repo, dir), "conflicts in pkg/a/a.go")
	git(t, repo, "am", "--skip")
	damage(t, dir, first0, "Say why", "Say it")
	wantRefusal(t, rebase(t, repo, dir), "patch files changed since the tree was made: "+first0)
}
