package prove

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"

	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/progress"
)

var fullHash = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// earlier finds the commit to compare patches with, in origin if the clone lacks it: after a force push, CI names
// one that no branch leads to. "" is to prove all, and note then says why: what CI has passed cannot be known.
func earlier(ctx context.Context, repo gitrepo.Repo, since string) (commit, note string, err error) {
	if since == "" {
		return "", "", nil
	}
	if commit, err = repo.Rev(ctx, since+"^{commit}"); err == nil {
		return commit, "", nil
	}
	if !fullHash.MatchString(since) {
		return "", "", progress.Refuse(fmt.Sprintf("SINCE=%s is no commit of this clone", since), "one that git knows, or a full hash, which is fetched", "make prove SINCE=HEAD~1")
	}
	if repo.Git(ctx, "fetch", "--quiet", "--no-tags", "origin", since) != nil {
		return "", fmt.Sprintf("commit %.12s is not in this clone, and cannot be fetched from origin: all patches are proven", since), ctx.Err()
	}
	commit, err = repo.Rev(ctx, since+"^{commit}")
	return commit, "", err
}

// changedPatches returns the names of the files in a folder that differ from those of a commit, but not of those that
// only have another name: a patch that gets another number is the same.
func changedPatches(ctx context.Context, repo gitrepo.Repo, commit, folder string) ([]string, error) {
	files, err := repo.Lines(ctx, "diff", "--name-only", "--diff-filter=AM", "--find-renames=100%", commit, "--", folder)
	for i, f := range files {
		files[i] = filepath.Base(f)
	}
	return files, err
}
