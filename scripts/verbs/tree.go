package verbs

import (
	"context"

	"github.com/spf13/cobra"
)

func treeCommand(a *App) *cobra.Command {
	return verb("tree", "Assemble the pinned bases, verified and committed", `
Each project of patches/ gets a git repository in _work, with its base as one commit. Every
byte is checked against the sums of the pins.`, "  capacityv2 tree --kubernetes-src ~/src/kubernetes", a.Tree)
}

// Tree makes the base trees.
func (a *App) Tree(ctx context.Context) error {
	r := a.reporter("tree")
	if err := r.Run(ctx, a.makeTree()...); err != nil {
		return err
	}
	r.Printf("trees: %s\n", a.WS.Work)
	r.Done()
	return nil
}
