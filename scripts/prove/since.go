package prove

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"

	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/run"
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
		return "", "", run.Refuse(fmt.Sprintf("SINCE=%s is no commit of this clone", since), "one that git knows, or a full hash, which is fetched", "make prove SINCE=HEAD~1")
	}
	if repo.Git(ctx, "fetch", "--quiet", "--no-tags", "origin", since) != nil {
		return "", fmt.Sprintf("commit %.12s is not in this clone, and cannot be fetched from origin: all patches are proven", since), ctx.Err()
	}
	commit, err = repo.Rev(ctx, since+"^{commit}")
	return commit, "", err
}

// changedPatches returns the names of the patches in a folder that a commit does not have there, under whatever name: a
// patch that gets another number is the same. Git need not know them yet.
func changedPatches(ctx context.Context, repo gitrepo.Repo, commit, folder string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.patch"))
	if err != nil || len(paths) == 0 {
		return nil, err
	}
	before, err := repo.Lines(ctx, "ls-tree", "-r", "--format=%(objectname)", commit, "--", folder)
	if err != nil {
		return nil, err
	}
	now, err := repo.Lines(ctx, append([]string{"hash-object", "--"}, paths...)...)
	if err != nil {
		return nil, err
	}
	var changed []string
	for i, path := range paths {
		if !slices.Contains(before, now[i]) {
			changed = append(changed, filepath.Base(path))
		}
	}
	return changed, nil
}
