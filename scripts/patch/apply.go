// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/ground/cli"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch/base"
	"capacityv2.internal/scripts/patch/series"
)

func applyVerb() *cobra.Command {
	var own bool
	c := cli.Verb("apply", "Assemble the pinned bases, and put each series on its base, one commit per patch", `
Each project of patches/ gets a git repository in _work, with its base as one commit, of which
every byte is checked against the sums of the pins. The result has to be the commit of tree.lock. A tree with changes
that are not committed, or with commits that are not exported, is refused. Where a patch does not apply, git am waits in
the tree for a merge by hand.

With --rebase, it puts commits that are not exported on patch files that have changed since the tree was made, as after a
git pull: it takes the newer version of each patch, and merges those that both have changed.

_work/overrides/go.mod.replace has the lines with which another Go module builds against the trees.`,
		"  capacityv2 apply --kubernetes-src ~/src/kubernetes", func(ctx context.Context, ws workspace.Workspace) error {
			if own {
				return ws.Run(ctx, "apply", append(Bases(ws, ""), ws.Each("commits of your own on the patch files", "", func(ctx context.Context, p workspace.Project, s *run.Step) error {
					s.Sayf("%s: %s", p.Title, p.Tree())
					return series.RebaseOwn(ctx, p.Repo(s.Log), p.Series(), s)
				}))...)
			}
			return ws.Run(ctx, "apply", Applied(ws, Overrides(ws))...)
		})
	c.Flags().BoolVar(&own, "rebase", false, "put commits that are not exported on the patch files")
	return c
}

// Overrides writes the lines with which another Go module builds against the trees.
func Overrides(ws workspace.Workspace) run.Task {
	return run.Task{Name: "lines for the go.mod of other modules", Do: func(_ context.Context, s *run.Step) error {
		projects, err := ws.Projects()
		if err != nil {
			return err
		}
		s.Sayf("%s", ws.Overrides())
		return base.WriteOverrides(ws.Overrides(), projects)
	}}
}
