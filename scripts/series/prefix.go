package series

import (
	"context"
	"fmt"
	"strings"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
)

// Prefix is the tree after the first patches of the series.
type Prefix struct {
	Commit  string
	Subject string
	// Paths are the files that the last of these patches touches.
	Paths []string
}

// Prefixes returns the commits on the base, oldest first.
func Prefixes(ctx context.Context, repo gitrepo.Repo) ([]Prefix, error) {
	lines, err := repo.Lines(ctx, "log", "--reverse", "--format=%H %s", base.Ref+"..HEAD")
	if err != nil {
		return nil, err
	}
	var all []Prefix
	for _, l := range lines {
		commit, subject, _ := strings.Cut(l, " ")
		paths, err := repo.Lines(ctx, "diff-tree", "-r", "--no-commit-id", "--name-only", commit)
		if err != nil {
			return nil, fmt.Errorf("files of %s: %w", commit, err)
		}
		all = append(all, Prefix{commit, subject, paths})
	}
	return all, nil
}
