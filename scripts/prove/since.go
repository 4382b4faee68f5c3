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

// locksSince returns the locks of a series now and in a commit, and whether both have the same base and the same checks:
// without that, nothing that the commit has passed holds now.
func locksSince(ctx context.Context, repo gitrepo.Repo, commit, folder string) (now, before series.Lock, same bool, err error) {
	file, err := filepath.Rel(repo.Dir, filepath.Join(folder, series.LockName))
	if err != nil {
		return now, before, false, err
	}
	if now, err = series.ReadLock(folder); err != nil {
		return now, before, false, err
	}
	changed, err := repo.Lines(ctx, "diff", "--name-only", commit, "--",
		"scripts/prove", "scripts/series", "scripts/toolchain", filepath.Join(filepath.Dir(file), "project.yaml"))
	if err != nil || len(changed) > 0 {
		return now, before, false, err
	}
	text, err := repo.Output(ctx, "show", commit+":"+filepath.ToSlash(file))
	if err != nil {
		return now, before, false, ctx.Err() // the commit does not have the series
	}
	if err := yaml.Unmarshal([]byte(text), &before); err != nil {
		return now, before, false, fmt.Errorf("%s of commit %.12s: %w", file, commit, err)
	}
	return now, before, before.BaseTree == now.BaseTree, nil
}

// verifiedAt returns how many of the first patches of Kubernetes a commit has, too, on the same base. Who has verified
// it knows those prefixes, unless what checks them has changed since.
func verifiedAt(ctx context.Context, repo gitrepo.Repo, commit, folder string) (int, error) {
	now, before, same, err := locksSince(ctx, repo, commit, folder)
	n := 0
	for same && n < min(len(before.Patches), len(now.Patches)) && before.Patches[n] == now.Patches[n] {
		n++
	}
	return n, err
}

// changedPatches returns the names of the patches in a folder that a commit does not have there, under whatever name: a
// patch that gets another number is the same. Git need not know them yet. It returns all if one of the series that bases
// are the folders of is not on the same base, or the checks differ.
func changedPatches(ctx context.Context, repo gitrepo.Repo, commit, folder string, bases ...string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.patch"))
	if err != nil || len(paths) == 0 {
		return nil, err
	}
	before, err := repo.Lines(ctx, "ls-tree", "-r", "--format=%(objectname)", commit, "--", folder)
	if err != nil {
		return nil, err
	}
	for _, base := range bases {
		if _, _, same, err := locksSince(ctx, repo, commit, base); err != nil {
			return nil, err
		} else if !same {
			before = nil
		}
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
