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

// Rebase puts the patches of dir on another base in repo, as [Apply] does: where one conflicts, git am waits for a person,
// who then gives the same command again. It says which patches are not there at the end.
func Rebase(ctx context.Context, repo gitrepo.Repo, dir, command string, s *run.Step) error {
	files, err := storeFiles(ctx, repo, dir)
	if err != nil {
		return err
	}
	if rebased, err := Rebased(ctx, repo); err != nil {
		return err
	} else if !rebased {
		if err := files.applyToBase(ctx, repo, dir, command+" again"); err != nil {
			return err
		}
	}
	commits, err := Prefixes(ctx, repo)
	if err != nil {
		return err
	}
	var missing []string
	for _, p := range files.patches {
		if !slices.ContainsFunc(commits, func(c Prefix) bool { return c.Subject == p.Subject }) {
			missing = append(missing, p.Name)
		}
	}
	s.AtEnd("%d patches are %d commits on the new base\n", len(files.patches), len(commits))
	if len(missing) > 0 {
		s.AtEnd("the base has these already, or they were left out: %s\n", strings.Join(missing, ", "))
	}
	return nil
}

// Rebased reports whether there are commits on the base of a tree.
func Rebased(ctx context.Context, repo gitrepo.Repo) (bool, error) {
	revs, err := repo.Lines(ctx, "rev-parse", "HEAD", base.Ref+"^{commit}")
	return err == nil && revs[0] != revs[1], err
}
