package prove

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"

	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/series"
)

var fullHash = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// earlier finds the commit to compare patches with, in origin if the clone lacks it: after a force push, CI names
// one that no branch leads to. "" is to check all, and note then says why: what CI has passed cannot be known.
func earlier(ctx context.Context, repo gitrepo.Repo, since string) (commit, note string, err error) {
	if since == "" {
		return "", "", nil
	}
	if commit, err = repo.Rev(ctx, since+"^{commit}"); err == nil {
		return commit, "", nil
	}
	if !fullHash.MatchString(since) {
		return "", "", run.Refuse(fmt.Sprintf("SINCE=%s is no commit of this clone", since), "one that git knows, or a full hash, which is fetched", "SINCE=HEAD~1")
	}
	if repo.Git(ctx, "fetch", "--quiet", "--no-tags", "origin", since) != nil {
		return "", fmt.Sprintf("commit %.12s is not in this clone, and cannot be fetched from origin: nothing is left out", since), ctx.Err()
	}
	commit, err = repo.Rev(ctx, since+"^{commit}")
	return commit, "", err
}

// verifiedAt returns how many of the first patches of Kubernetes a commit has, too, on the same base. Who has verified
// it knows those prefixes, unless what checks them has changed since.
func verifiedAt(ctx context.Context, repo gitrepo.Repo, commit, folder string) (int, error) {
	file, err := filepath.Rel(repo.Dir, filepath.Join(folder, series.LockName))
	if err != nil {
		return 0, err
	}
	now, err := series.ReadLock(folder)
	if err != nil {
		return 0, err
	}
	changed, err := repo.Lines(ctx, "diff", "--name-only", commit, "--", "scripts/prove", "scripts/series", "scripts/toolchain", filepath.Join(filepath.Dir(file), "project.yaml"))
	if err != nil || len(changed) > 0 {
		return 0, err
	}
	text, err := repo.Output(ctx, "show", commit+":"+filepath.ToSlash(file))
	if err != nil {
		return 0, err
	}
	var before series.Lock
	if err := yaml.Unmarshal([]byte(text), &before); err != nil {
		return 0, fmt.Errorf("%s of commit %.12s: %w", file, commit, err)
	}
	n := 0
	if before.BaseTree == now.BaseTree {
		for n < min(len(before.Patches), len(now.Patches)) && before.Patches[n] == now.Patches[n] {
			n++
		}
	}
	return n, nil
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
