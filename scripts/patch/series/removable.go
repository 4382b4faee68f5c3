// SPDX-License-Identifier: Apache-2.0

package series

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/patch/base"
)

// EnsureRemovable refuses what would be lost with the repository itself: what
// [EnsureSafe] refuses, stashes, branches of a person, and work trees elsewhere.
func EnsureRemovable(ctx context.Context, repo gitrepo.Repo) error {
	if err := EnsureSafe(ctx, repo); err != nil {
		return err
	}
	stashes, err := repo.Lines(ctx, "stash", "list")
	if err != nil {
		return err
	}
	if len(stashes) > 0 {
		return run.Refuse("stashed changes in "+repo.Dir+", such as "+stashes[0],
			"none: they go with the repository", "git -C "+repo.Dir+" stash show --patch > FILE, then stash drop")
	}
	// HEAD may be elsewhere.
	unexported, err := repo.Lines(ctx, "for-each-ref", "--no-merged="+base.ExportedRef, "refs/heads/"+base.Branch)
	if err != nil {
		return err
	}
	if len(unexported) > 0 {
		git := "git -C " + repo.Dir + " "
		return run.Refuse("commits of the branch "+base.Branch+" in "+repo.Dir+" are not exported", "none: they go with the repository",
			git+"checkout "+base.Branch+", then make export; or "+git+"branch --force "+base.Branch+" "+base.ExportedRef)
	}
	branches, err := repo.Lines(ctx, "for-each-ref", "--format=%(refname:short)", "refs/heads")
	if err != nil {
		return err
	}
	branches = slices.DeleteFunc(branches, func(b string) bool { return b == base.Branch })
	if len(branches) > 0 {
		return run.Refuse("branches in "+repo.Dir+": "+strings.Join(branches, ", "), "only "+base.Branch+": they go with the repository",
			"git -C "+repo.Dir+" bundle create FILE "+strings.Join(branches, " ")+", then branch -D")
	}
	trees, err := repo.Lines(ctx, "worktree", "list", "--porcelain")
	if err != nil {
		return err
	}
	tree, err := filepath.EvalSymlinks(repo.Dir)
	if err != nil {
		return err
	}
	for _, line := range trees {
		if dir, ok := strings.CutPrefix(line, "worktree "); ok && dir != tree && !strings.HasPrefix(dir, tree+"-") {
			return run.Refuse("a work tree of "+repo.Dir+" in "+dir,
				"none that the tooling did not make: it goes with the repository", "git -C "+repo.Dir+" worktree remove "+dir)
		}
	}
	return nil
}
