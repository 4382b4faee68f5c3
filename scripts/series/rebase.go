package series

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/run"
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

// rebasingKey is the patch at which a rebase stopped, in the tree's configuration, or the last one since then.
const rebasingKey = "capacityv2.rebasing"

// Stopped reports whether a rebase stopped in the tree.
func Stopped(ctx context.Context, repo gitrepo.Repo) bool {
	return repo.Git(ctx, "config", "--local", "--get", rebasingKey) == nil
}

// Rest returns the patches after the one at which an earlier rebase stopped, which a
// person has merged or left out since, and after those that it put there since; all of them if there was none.
func Rest(ctx context.Context, repo gitrepo.Repo, patches []Patch) []Patch {
	name, err := repo.Output(ctx, "config", "--local", "--get", rebasingKey)
	for i, p := range patches {
		if err == nil && p.Name == name {
			return patches[i+1:]
		}
	}
	return patches
}

// Rebase commits the patches on what repo has at HEAD, with a 3-way
// merge where a patch does not apply as it is. It stops at the first conflict,
// which is left in the tree for a person, or goes on without that patch when
// forecast is set.
func Rebase(ctx context.Context, repo gitrepo.Repo, dir string, patches []Patch, forecast bool, s *run.Step) ([]Result, error) {
	var results []Result
	goesOn := !forecast && Stopped(ctx, repo)
	for _, p := range patches {
		r, err := rebaseOne(ctx, repo, filepath.Join(dir, p.Name), p)
		if err != nil {
			return results, err
		}
		results = append(results, r)
		s.Sayf("%-16s %s%s", r.Outcome, p.Name, conflictList(r.Files))
		if goesOn || r.Outcome == Conflict && !forecast {
			if err := repo.Git(ctx, "config", "--local", rebasingKey, p.Name); err != nil {
				return results, err
			}
		}
		switch {
		case r.Outcome == Conflict && !forecast:
			return results, run.Refuse(fmt.Sprintf("%s conflicts in %s", p.Name, strings.Join(r.Files, ", ")), "a merge by hand",
				"git -C "+repo.Dir+" status; edit, git add, git am --continue (or --skip); then the same command again")
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
		if ctx.Err() != nil || !repo.Applying() {
			return Result{}, err
		}
		files, e := repo.Lines(ctx, "diff", "--name-only", "--diff-filter=U")
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
			return nil, run.Refuse("no file of the base matches "+p, "the files that would have the names, as namesIn of project.yaml", "edit project.yaml")
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
