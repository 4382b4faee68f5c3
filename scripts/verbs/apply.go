package verbs

import (
	"context"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/run"
)

func applyCommand(a *App) *cobra.Command {
	return verb("apply", "Assemble the pinned bases, and put each series on its base, one commit per patch", `
Each project of patches/ gets a git repository in _work, with its base as one commit, of which
every byte is checked against the sums of the pins. The result has to have the hashes of tree.lock. A tree with changes that are not committed,
or with commits that are not exported, is refused.`, "  capacityv2 apply --kubernetes-src ~/src/kubernetes", a.Apply)
}

// writeOverrides writes the lines with which another Go module builds against the trees.
func (a *App) writeOverrides(_ context.Context, s *run.Step) error {
	projects, err := a.WS.Projects()
	if err != nil {
		return err
	}
	s.Sayf("%s", a.WS.Overrides())
	return base.WriteOverrides(a.WS.Overrides(), projects)
}

// Apply puts each series on its base tree, one commit per patch.
func (a *App) Apply(ctx context.Context) error {
	return a.do(ctx, "apply", a.apply(run.Task{Name: "lines for the go.mod of other modules", Do: a.writeOverrides})...)
}
