package series

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
	head, err := repo.Rev(ctx, "HEAD")
	if err != nil {
		return err
	}
	exported, err := repo.Rev(ctx, base.ExportedRef)
	if err != nil {
		return err
	}
	if head != exported {
		return run.Refuse(run.Refusal{
			Found:    "the commits in " + repo.Dir + " are not those that were exported",
			Expected: "no change since then",
			Run:      "make export, or git -C " + repo.Dir + " reset --hard " + base.ExportedRef,
		})
	}
	return nil
}

// ensureCommitted refuses uncommitted changes and a half-done apply.
func ensureCommitted(ctx context.Context, repo gitrepo.Repo) error {
	if repo.Applying() {
		return run.Refuse(run.Refusal{
			Found:    "a git am or rebase is half-done in " + repo.Dir,
			Expected: "a finished one",
			Run:      "git -C " + repo.Dir + " am --continue, or am --abort",
		})
	}
	dirty, err := repo.Dirty(ctx)
	if err == nil && len(dirty) > 0 {
		err = run.Refuse(run.Refusal{
			Found:    fmt.Sprintf("dirty tree: %d changed files in %s, first %q", len(dirty), repo.Dir, dirty[0]),
			Expected: "every change in a commit",
			Run:      "git -C " + repo.Dir + " commit, then make export; or git -C " + repo.Dir + " stash --include-untracked",
		})
	}
	return err
}

// Apply puts the patches on the base, one commit each. When HEAD already is
// the series' result, nothing is done. On failure the tree is back at the base.
func Apply(ctx context.Context, repo gitrepo.Repo, dir string, s *run.Step) error {
	patches, err := Read(dir)
	if err != nil {
		return err
	}
	lock, err := ReadLock(dir)
	if err != nil {
		return err
	}
	if err := CheckSums(patches, lock); err != nil {
		return err
	}
	if err := EnsureSafe(ctx, repo); err != nil {
		return err
	}
	origin, err := base.OriginOf(ctx, repo)
	if err != nil {
		return err
	}
	baseTree, err := repo.Tree(ctx, base.Ref)
	if err != nil {
		return err
	}
	if !origin.Checkout && baseTree != lock.BaseTree {
		return run.Refuse(run.Refusal{
			Found:    "tree lock: the base tree is " + baseTree,
			Expected: lock.BaseTree + " (" + LockName + ")",
			Run:      "make clean, then make apply",
		})
	}
	applied, err := alreadyApplied(ctx, repo, patches, "HEAD")
	if err != nil {
		return err
	}
	if applied {
		s.Sayf("patches that are applied already: %d", len(patches))
		return CheckLock(ctx, repo, lock, patches)
	}
	// Am starts at the base, and ends there if it fails.
	if err := repo.Git(ctx, "update-ref", base.ExportedRef, base.Ref); err != nil {
		return err
	}
	if err := Am(ctx, repo, dir, patches); err != nil {
		return err
	}
	head, err := repo.Rev(ctx, "HEAD")
	if err != nil {
		return err
	}
	if err := setApplied(ctx, repo, patches, head); err != nil {
		return err
	}
	if err := CheckLock(ctx, repo, lock, patches); err != nil {
		return err
	}
	s.Sayf("patches applied: %d", len(patches))
	return nil
}

// appliedKey holds, in the tree's configuration, the hash of the patch files
// behind a commit.
const appliedKey = "capacityv2.applied"

func digest(patches []Patch) string {
	var b strings.Builder
	for _, p := range patches {
		fmt.Fprintf(&b, "%s %s,", p.Name, p.SHA256())
	}
	return Patch{Bytes: []byte(b.String())}.SHA256()
}

// alreadyApplied reports whether a commit is the result of the patches.
func alreadyApplied(ctx context.Context, repo gitrepo.Repo, patches []Patch, rev string) (bool, error) {
	commit, err := repo.Rev(ctx, rev)
	if err != nil {
		return false, err
	}
	got, err := repo.Output(ctx, "config", "--local", "--default", "", "--get", appliedKey)
	return got == digest(patches)+"@"+commit, err
}

// setApplied records that a commit is the result of the patches, and is on disk.
func setApplied(ctx context.Context, repo gitrepo.Repo, patches []Patch, commit string) error {
	return repo.GitAll(ctx, []string{"config", "--local", appliedKey, digest(patches) + "@" + commit}, []string{"update-ref", base.ExportedRef, commit})
}

// Am resets the tree to the base and commits the patches. On failure the tree is
// back at the base. It writes no refs, which all work trees share.
func Am(ctx context.Context, repo gitrepo.Repo, dir string, patches []Patch) error {
	if err := toBase(ctx, repo); err != nil {
		return interrupted(ctx, repo, err)
	}
	for _, p := range patches {
		if err := am(ctx, repo, filepath.Join(dir, p.Name)); err != nil {
			return amFailed(ctx, repo, filepath.Join(dir, p.Name), err)
		}
	}
	return nil
}

func toBase(ctx context.Context, repo gitrepo.Repo) error {
	return repo.Git(ctx, "reset", "--quiet", "--hard", base.Ref)
}

// interrupted returns the tree to the base even after an interrupt: half of the series
// looks like commits of somebody's. It returns the cause.
func interrupted(ctx context.Context, repo gitrepo.Repo, cause error) error {
	ctx = context.WithoutCancel(ctx)
	_ = repo.Git(ctx, "am", "--abort") // there may be none
	return errors.Join(cause, toBase(ctx, repo))
}

// am commits one patch. The committer and its date are fixed, so that the
// commit's name is the same everywhere; CRs are content.
func am(ctx context.Context, repo gitrepo.Repo, path string, more ...string) error {
	args := append([]string{"am", "--quiet", "--keep-cr", "--committer-date-is-author-date", "--no-gpg-sign"}, more...)
	return repo.Git(ctx, append(args, path)...)
}

var failedHunk = regexp.MustCompile(`(?m)^error: patch failed: (.+):(\d+)$`)

// amFailed says which hunk did not apply and what the base has there, and
// returns the tree to the base.
func amFailed(ctx context.Context, repo gitrepo.Repo, path string, cause error) error {
	if ctx.Err() != nil {
		return interrupted(ctx, repo, cause)
	}
	ctx = context.WithoutCancel(ctx)
	applied, err := repo.Output(ctx, "rev-list", "--count", base.Ref+"..HEAD")
	if err != nil {
		return err
	}
	if err := repo.Git(ctx, "am", "--abort"); err != nil {
		return err
	}
	_, err = repo.Output(ctx, "apply", "--check", path)
	found := fmt.Sprintf("patch %s does not apply (%s before it do)", filepath.Base(path), applied)
	if err != nil {
		found += "\n" + hunks(repo.Dir, err.Error())
	} else {
		found += ": " + cause.Error()
	}
	if err := toBase(ctx, repo); err != nil {
		return err
	}
	return run.Refuse(run.Refusal{
		Found:    found,
		Expected: "every hunk applies without fuzz; the tree is back at the base",
		Run:      "git checkout -- " + path + ", or make rebase BASE=<tag> to merge with 3-way",
	})
}

// hunks lists git's complaints, each with the lines of the tree at that place.
func hunks(tree, complaint string) string {
	var b strings.Builder
	for _, m := range failedHunk.FindAllStringSubmatch(strings.ReplaceAll(complaint, "\n    ", "\n"), -1) {
		line, _ := strconv.Atoi(m[2])
		fmt.Fprintf(&b, "  hunk at %s:%d; the tree has there:\n", m[1], line)
		content, err := os.ReadFile(filepath.Join(tree, filepath.FromSlash(m[1])))
		if err != nil {
			fmt.Fprintf(&b, "    (%v)\n", err)
			continue
		}
		lines := strings.Split(string(content), "\n")
		for i := max(line-1, 0); i < min(line+4, len(lines)); i++ {
			fmt.Fprintf(&b, "    %d: %s\n", i+1, lines[i])
		}
	}
	if b.Len() == 0 {
		return complaint
	}
	return strings.TrimRight(b.String(), "\n")
}
