package verbs

import (
	"context"

	"github.com/spf13/cobra"
)

func applyCommand(a *App) *cobra.Command {
	return verb("apply", "Put each series on its base, one commit per patch", `
The result has to have the hashes of tree.lock. A tree with changes that are not committed,
or with commits that are not exported, is refused.`, "", a.Apply)
}

// Apply puts each series on its base tree, one commit per patch.
func (a *App) Apply(ctx context.Context) error {
	r := a.reporter("apply")
	if err := r.Run(ctx, a.apply()...); err != nil {
		return err
	}
	r.Printf("trees: %s\n", a.WS.Work)
	r.Done()
	return nil
}
