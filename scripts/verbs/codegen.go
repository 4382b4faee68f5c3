package verbs

import (
	"context"

	"capacityv2.internal/scripts/codegen"
)

// Codegen regenerates, shows what changed, and leaves it in the tree for a
// commit.
func (a *App) Codegen(ctx context.Context, scope string) error {
	s, err := codegen.ParseScope(scope)
	if err != nil {
		return err
	}
	r := a.reporter("codegen")
	// Not apply: commits of a contributor that are not exported are the point.
	if err := r.Run(ctx, a.makeTree()...); err != nil {
		return err
	}
	res, err := codegen.Run(ctx, a.WS, s, r)
	if err != nil {
		return err
	}
	if err := codegen.CopyBack(ctx, a.WS, res); err != nil {
		return err
	}
	if len(res.Changed) > 0 {
		r.Printf("%s\n%d files changed in %s; commit them in a patch of Class: generated, then make export\n", res.Diff, len(res.Changed), a.WS.Tree())
	}
	r.Done()
	return nil
}
