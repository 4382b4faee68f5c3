// SPDX-License-Identifier: Apache-2.0

package series

import (
	"context"
	"slices"
	"strings"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/patch/base"
)

// TakenNames lists the names that a base has, in the files that match patterns, without
// the series: upstream took them, so the series has to change before it moves.
func TakenNames(ctx context.Context, repo gitrepo.Repo, names, patterns []string) ([]string, error) {
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
