// SPDX-License-Identifier: Apache-2.0

package series

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/patch/base"
)

// EnsureSafe refuses what a reset of the tree would lose: uncommitted changes,
// commits that are not exported, a half-done apply.
func EnsureSafe(ctx context.Context, repo gitrepo.Repo) error {
	if err := ensureCommitted(ctx, repo); err != nil {
		return err
	}
	own, err := hasOwnCommits(ctx, repo)
	if err == nil && own {
		err = notExported(repo)
	}
	return err
}

func notExported(repo gitrepo.Repo) error {
	return run.Refuse("the commits in "+repo.Dir+" are not those that were exported",
		"no change since then", "make export, or git -C "+repo.Dir+" reset --hard "+base.ExportedRef)
}

// hasOwnCommits reports whether HEAD is not what was exported.
func hasOwnCommits(ctx context.Context, repo gitrepo.Repo) (bool, error) {
	head, errHead := repo.Rev(ctx, "HEAD")
	exported, errExported := repo.Rev(ctx, base.ExportedRef)
	return head != exported, errors.Join(errHead, errExported)
}

// ensureCommitted refuses uncommitted changes and a half-done apply.
func ensureCommitted(ctx context.Context, repo gitrepo.Repo) error {
	if repo.Applying() {
		return run.Refuse("a git am or rebase is half-done in "+repo.Dir,
			"a finished one", "git -C "+repo.Dir+" status, which says how to go on or to abort it; after going on, make export, or make rebase again")
	}
	dirty, err := repo.Dirty(ctx)
	if err == nil && len(dirty) > 0 {
		err = run.Refuse(fmt.Sprintf("dirty tree: %d changed files in %s, first %q", len(dirty), repo.Dir, dirty[0]),
			"every change in a commit", "git -C "+repo.Dir+" commit, then make export; or git -C "+repo.Dir+" stash --include-untracked")
	}
	return err
}

// Apply puts the patches on the base, one commit each, and compares the result with the lock. When HEAD already is
// the series' result, nothing is done. Where a patch conflicts, git am waits for a person.
func Apply(ctx context.Context, repo gitrepo.Repo, dir string, s *run.Step) error {
	files, err := storeFiles(ctx, repo, dir)
	if err != nil {
		return err
	}
	if files.ownCommits {
		return notExported(repo)
	}
	// A lock of another series must not keep anybody from the tree that make export writes it from.
	lock, errLock := ReadLock(dir)
	origin, err := base.OriginOf(ctx, repo)
	if err == nil && errLock == nil && !origin.Checkout {
		err = lock.checkBase(ctx, repo)
	}
	if err != nil {
		return err
	}
	if err := files.apply(ctx, repo, dir, s); err != nil || errLock != nil {
		return errors.Join(err, errLock)
	}
	return CheckLock(ctx, repo, lock, files.patches)
}

// apply puts the patch files on the base, unless HEAD is made from them.
func (f stored) apply(ctx context.Context, repo gitrepo.Repo, dir string, s *run.Step) error {
	revs, err := repo.Lines(ctx, "rev-parse", "HEAD", base.Ref+"^{commit}")
	if err != nil {
		return err
	}
	if revs[0] != revs[1] && f.current {
		s.Sayf("patches that are applied already: %d", len(f.patches))
		return nil
	}
	if err := f.applyToBase(ctx, repo, dir, "make export"); err != nil {
		return err
	}
	s.Sayf("patches applied: %d", len(f.patches))
	return nil
}

// applyToBase resets a tree to its base, and commits the patches. Where one conflicts, git am waits for a person, who then
// runs what is named.
func (f stored) applyToBase(ctx context.Context, repo gitrepo.Repo, dir, then string) error {
	if err := toBase(ctx, repo); err != nil {
		return err
	}
	if err := setExported(ctx, repo, base.Ref, f.folder); err != nil {
		return err
	}
	if stopped, err := am(ctx, repo, dir, f.patches); err != nil {
		return err
	} else if stopped != "" {
		return run.Refuse(stopped, "a merge by hand: git am waits in "+repo.Dir,
			"git -C "+repo.Dir+" status; edit, git add, git am --continue there (or --skip, or --abort); then "+then)
	}
	return setExported(ctx, repo, "HEAD", f.folder)
}

// toBase does not heed an interrupt: half of a reset looks like changes of somebody's.
func toBase(ctx context.Context, repo gitrepo.Repo) error {
	return repo.Git(context.WithoutCancel(ctx), "reset", "--quiet", "--hard", base.Ref)
}

// amCommand commits patches. The committer and its date are fixed, so that the commit's name is the same everywhere; CRs
// are content. What does not apply is merged: that the result is the one that was exported, its name says.
var amCommand = []string{"am", "--quiet", "--3way", "--keep-cr", "--committer-date-is-author-date", "--no-gpg-sign"}

// am commits the patches on HEAD. It writes no refs, which all work trees share. Where one does not apply, git am stops, and
// it says why. After an interrupt, the tree is at the base.
func am(ctx context.Context, repo gitrepo.Repo, dir string, patches []Patch) (stopped string, err error) {
	args := slices.Clone(amCommand)
	for _, p := range patches {
		args = append(args, filepath.Join(dir, p.Name))
	}
	cause := repo.Git(ctx, args...)
	if cause == nil || !repo.Applying() {
		return "", cause
	}
	interrupted := ctx.Err() != nil
	ctx = context.WithoutCancel(ctx)
	if interrupted {
		return "", errors.Join(cause, repo.Git(ctx, "am", "--abort"))
	}
	p, err := waitingPatch(ctx, repo, patches)
	if err != nil {
		return "", err
	}
	found, err := conflict(ctx, repo, filepath.Join(dir, p.Name))
	if err != nil {
		return "", err
	}
	applied, err := repo.Output(ctx, "rev-list", "--count", base.Ref+"..HEAD")
	return fmt.Sprintf("patch %s does not apply (%s before it do): %s", p.Name, applied, found), err
}

// waitingPatch returns the one that git am has stopped at.
func waitingPatch(ctx context.Context, repo gitrepo.Repo, patches []Patch) (Patch, error) {
	path, err := repo.Output(ctx, "rev-parse", "--path-format=absolute", "--git-path", "rebase-apply/next")
	if err != nil {
		return Patch{}, err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return Patch{}, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || n < 1 || n > len(patches) {
		return Patch{}, fmt.Errorf("%s: %q of %d patches", path, b, len(patches))
	}
	return patches[n-1], nil
}

// conflict names the files that a person has to merge. Without the blobs that a patch changes, or if it does not fit them,
// git merges nothing, and names the lines at which it fails.
func conflict(ctx context.Context, repo gitrepo.Repo, path string) (string, error) {
	files, err := conflictingFiles(ctx, repo)
	if err != nil || len(files) > 0 {
		return "conflicts in " + strings.Join(files, ", "), err
	}
	complaint := repo.Git(ctx, "apply", "--check", path)
	if complaint == nil {
		return "git am has stopped at it", nil
	}
	return "git cannot merge it\n" + complaint.Error(), nil
}

func conflictingFiles(ctx context.Context, repo gitrepo.Repo) ([]string, error) {
	return repo.Lines(ctx, "diff", "--name-only", "--diff-filter=U")
}
