// SPDX-License-Identifier: Apache-2.0

package eachpatch

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch/series"
)

// Selection says which patches are checked, by the name of the project and that of the file.
type Selection func(project, file string) bool

// All selects each patch.
func All(string, string) bool { return true }

// Matching selects patches whose file name matches. None is refused.
func Matching(ws workspace.Workspace, pattern *regexp.Regexp) (Selection, error) {
	projects, err := ws.Projects()
	if err != nil {
		return nil, err
	}
	for _, p := range projects {
		patches, err := series.Read(p.Series())
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(patches, func(patch series.Patch) bool { return pattern.MatchString(patch.Name) }) {
			return func(_, file string) bool { return pattern.MatchString(file) }, nil
		}
	}
	return nil, run.Refuse(fmt.Sprintf("no patch matches %q", pattern), "a regular expression for names of patches", "make verify ONLY=0013")
}

// Changed selects patches that differ from the commit before the last one, or are not in it. A change that was exported and is
// not committed is one, too. What is no git repository, or has one commit, has changed as a whole.
func Changed(ctx context.Context, ws workspace.Workspace) (Selection, error) {
	repo := gitrepo.Open(ws.Root, nil)
	if _, err := repo.Rev(ctx, "HEAD~1"); err != nil {
		return All, nil
	}
	names, err := repo.Lines(ctx, "diff", "--name-only", "--no-renames", "--relative", "HEAD~1", "--", "patches/*.patch")
	if err != nil {
		return nil, err
	}
	added, err := repo.Lines(ctx, "ls-files", "--others", "--exclude-standard", "--", "patches/*.patch")
	if err != nil {
		return nil, err
	}
	names = append(names, added...)
	return func(project, file string) bool { return slices.Contains(names, path.Join("patches", project, file)) }, nil
}
