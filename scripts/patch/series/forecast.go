// SPDX-License-Identifier: Apache-2.0

package series

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
)

// Outcome is what becomes of one patch on another base.
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

// Forecast tries the patches of dir on what repo has at HEAD, each without those before it that conflict. It counts the
// outcomes.
func Forecast(ctx context.Context, repo gitrepo.Repo, dir string, s *run.Step) (map[Outcome]int, error) {
	patches, err := Read(dir)
	if err != nil {
		return nil, err
	}
	outcomes := map[Outcome]int{}
	for _, p := range patches {
		outcome, files, err := tryPatch(ctx, repo, dir, p)
		if err != nil {
			return nil, err
		}
		outcomes[outcome]++
		line := p.Name
		if len(files) > 0 {
			line += ": " + strings.Join(files, ", ")
		}
		s.Sayf("%-16s %s", outcome, line)
	}
	return outcomes, nil
}

// tryPatch commits one patch, or leaves the tree as it is. It returns the files that conflict.
func tryPatch(ctx context.Context, repo gitrepo.Repo, dir string, p Patch) (Outcome, []string, error) {
	path := filepath.Join(dir, p.Name)
	before, err := repo.Rev(ctx, "HEAD")
	if err != nil {
		return "", nil, err
	}
	if repo.Git(ctx, "apply", "--check", "--reverse", path) == nil {
		return Upstream, nil, nil
	}
	merged := repo.Git(ctx, "apply", "--check", path) != nil
	if err := repo.Git(ctx, slices.Concat(amCommand, []string{path})...); err != nil {
		if ctx.Err() != nil || !repo.Applying() {
			return "", nil, err
		}
		files, err := conflictingFiles(ctx, repo)
		if err != nil {
			return "", nil, err
		}
		return Conflict, files, repo.Git(ctx, "am", "--skip")
	}
	after, err := repo.Rev(ctx, "HEAD")
	if err != nil || after == before {
		return Upstream, nil, err
	}
	// Whether hunks moved, git apply says only among its messages, in the user's language.
	made, err := repo.Output(ctx, "diff-tree", "--patch", "--no-commit-id", "--full-index", "--binary", "--no-renames", "--diff-algorithm=myers", "--no-indent-heuristic", "HEAD")
	if merged || !slices.Equal(hunkHeader.FindAllString(made, -1), hunkHeader.FindAllString(string(p.Bytes), -1)) {
		return Fuzz, nil, err
	}
	return Clean, nil, err
}

// hunkHeader is a line of a patch that says where it changes a file.
var hunkHeader = regexp.MustCompile(`(?m)^(\+\+\+ .*|@@ [-+,\d ]+ @@)`)
