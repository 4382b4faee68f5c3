// SPDX-License-Identifier: Apache-2.0

package series

import (
	"context"
	"strings"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/patch/base"
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
	log, err := repo.Output(ctx, "log", "--reverse", "--no-renames", "--name-only", "--format=%x00%H %s", base.Ref+"..HEAD")
	if err != nil || log == "" {
		return nil, err
	}
	var all []Prefix
	for _, entry := range strings.Split(log, "\x00")[1:] {
		title, paths, _ := strings.Cut(entry, "\n")
		commit, subject, _ := strings.Cut(title, " ")
		all = append(all, Prefix{commit, subject, strings.FieldsFunc(paths, func(r rune) bool { return r == '\n' })})
	}
	return all, nil
}
