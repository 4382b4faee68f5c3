package patch

import (
	"context"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/ground/cli"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch/base"
)

func applyVerb() *cobra.Command {
	return cli.Verb("apply", "Assemble the pinned bases, and put each series on its base, one commit per patch", `
Each project of patches/ gets a git repository in _work, with its base as one commit, of which
every byte is checked against the sums of the pins. The result has to have the hashes of tree.lock. A tree with changes
that are not committed, or with commits that are not exported, is refused.

_work/overrides/go.mod.replace has the lines with which another Go module builds against the trees.`,
		"  capacityv2 apply --kubernetes-src ~/src/kubernetes", func(ctx context.Context, ws workspace.Workspace) error {
			return ws.Run(ctx, "apply", Applied(ws, Overrides(ws))...)
		})
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
