package series

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/patch/base"
)

// Outcome is what became of one patch on another base.
type Outcome string

// The outcomes, from cheap to costly.
const (
	// Clean: every hunk applies where it says.
	Clean Outcome = "clean"
	// Fuzz: every hunk applies, some at another line or after a 3-way merge.
	Fuzz Outcome = "fuzz"
	// Upstream: the base has the change already.
	Upstream Outcome = "already upstream"
	// Conflict: a person has to merge it.
	Conflict Outcome = "conflict"
)

// Result is the outcome of one patch.
type Result struct {
	Patch   Patch
	Outcome Outcome
	// Files in conflict.
	Files []string
}

// rebasingKey is the digest of the patches that a rebase has come through, in the tree's configuration. The last of them
// may be in conflict.
const rebasingKey = "capacityv2.rebasing"

// Stopped reports whether a rebase has come through a patch in the tree.
func Stopped(ctx context.Context, repo gitrepo.Repo) bool {
	return repo.Git(ctx, "config", "--local", "--get", rebasingKey) == nil
}

// rest returns the patches that an earlier rebase has not come through: all of them if there was none.
func rest(ctx context.Context, repo gitrepo.Repo, patches []Patch) ([]Patch, error) {
	through, err := repo.Output(ctx, "config", "--local", "--default", "", "--get", rebasingKey)
	if err != nil || through == "" {
		return patches, err
	}
	for i := range patches {
		if digest(patches[:i+1]) == through {
			return patches[i+1:], nil
		}
	}
	return nil, run.Refuse(run.Refusal{
		Found:    "patch files changed since the rebase in " + repo.Dir + " began",
		Expected: "those that it began with",
		Run:      "git stash, or git checkout of the commit before; or remove the folder, to begin again",
	})
}

// Rebase commits the patches on what repo has at HEAD, with a 3-way
// merge where a patch does not apply as it is. It stops at the first conflict,
// which is left in the tree for a person, and the next call goes on after that. When
// forecast is set, it goes on without that patch.
func Rebase(ctx context.Context, repo gitrepo.Repo, dir string, patches []Patch, forecast bool, s *run.Step) ([]Result, error) {
	var results []Result
	left := patches
	if !forecast {
		var err error
		if left, err = rest(ctx, repo, patches); err != nil {
			return nil, err
		}
	}
	for i, p := range left {
		r, err := rebaseOne(ctx, repo, filepath.Join(dir, p.Name), p)
		if err != nil {
			return results, err
		}
		results = append(results, r)
		s.Sayf("%-16s %s%s", r.Outcome, p.Name, conflictList(r.Files))
		if !forecast { // what a person does to it must be known, also after an interrupt
			through := digest(patches[:len(patches)-len(left)+i+1])
			if err := repo.Git(context.WithoutCancel(ctx), "config", "--local", rebasingKey, through); err != nil {
				return results, err
			}
		}
		switch {
		case r.Outcome == Conflict && !forecast:
			return results, run.Refuse(run.Refusal{
				Found:    fmt.Sprintf("%s conflicts in %s", p.Name, strings.Join(r.Files, ", ")),
				Expected: "a merge by hand",
				Run:      "git -C " + repo.Dir + " status; edit, git add, git am --continue (or --skip); then the same command again",
			})
		case r.Outcome == Conflict:
			if err := repo.Git(ctx, "am", "--skip"); err != nil {
				return results, err
			}
		}
	}
	return results, nil
}

func conflictList(files []string) string {
	if len(files) == 0 {
		return ""
	}
	return ": " + strings.Join(files, ", ")
}

func rebaseOne(ctx context.Context, repo gitrepo.Repo, path string, p Patch) (Result, error) {
	before, err := repo.Rev(ctx, "HEAD")
	if err != nil {
		return Result{}, err
	}
	if repo.Git(ctx, "apply", "--check", "--reverse", path) == nil {
		return Result{Patch: p, Outcome: Upstream}, nil
	}
	merged := repo.Git(ctx, "apply", "--check", path) != nil
	if err := am(ctx, repo, path, "--3way"); err != nil {
		if !repo.Applying() {
			return Result{}, err
		}
		files, e := repo.Lines(context.WithoutCancel(ctx), "diff", "--name-only", "--diff-filter=U")
		if ctx.Err() != nil && len(files) == 0 {
			return Result{}, err // git was interrupted, and nothing is to be merged
		}
		return Result{Patch: p, Outcome: Conflict, Files: files}, e
	}
	after, err := repo.Rev(ctx, "HEAD")
	if err != nil {
		return Result{}, err
	}
	if after == before {
		return Result{Patch: p, Outcome: Upstream}, nil
	}
	fuzz, err := moved(ctx, repo, p)
	if merged || fuzz {
		return Result{Patch: p, Outcome: Fuzz}, err
	}
	return Result{Patch: p, Outcome: Clean}, err
}

// moved reports whether the commit just made has other hunk headers than its
// patch: git apply says so only among its messages, in the user's language.
func moved(ctx context.Context, repo gitrepo.Repo, p Patch) (bool, error) {
	made, err := repo.Output(ctx, "diff-tree", "--patch", "--no-commit-id", "--full-index", "--binary", "--no-renames", "--diff-algorithm=myers", "--no-indent-heuristic", "HEAD")
	if err != nil {
		return false, err
	}
	return !slices.Equal(position.FindAllString(made, -1), position.FindAllString(string(p.Bytes), -1)), nil
}

// position is a line of a patch that says where it changes a file.
var position = regexp.MustCompile(`(?m)^(\+\+\+ .*|@@ [-+,\d ]+ @@)`)

// Taken lists the names that a base has, in the files that match patterns, without
// the series: upstream took them, so the series has to change before it moves.
func Taken(ctx context.Context, repo gitrepo.Repo, names, patterns []string) ([]string, error) {
	grep := func(text []string, in ...string) ([]string, error) {
		found, err := repo.Lines(ctx, slices.Concat([]string{"grep", "--files-with-matches"}, text, []string{base.Ref, "--"}, in)...)
		if run.ExitCode(err) == 1 {
			return nil, nil // none
		}
		return found, err
	}
	for _, p := range patterns {
		if files, err := grep([]string{"-e", ""}, p); err != nil {
			return nil, err
		} else if len(files) == 0 {
			return nil, run.Refuse(run.Refusal{
				Found:    "no file of the base matches " + p,
				Expected: "the files that would have the names, as namesIn of project.yaml",
				Run:      "edit project.yaml",
			})
		}
	}
	var taken []string
	for _, n := range names {
		found, err := grep([]string{"--fixed-strings", "--word-regexp", "-e", n}, patterns...)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			taken = append(taken, n+" in "+strings.Join(found, ", "))
		}
	}
	return taken, nil
}
