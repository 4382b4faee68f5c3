package verbs

import (
	"context"
	"strings"

	"capacityv2.internal/scripts/overrides"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/series"
)

// Tree makes the base tree.
func (a *App) Tree(ctx context.Context) error {
	r := a.reporter("tree")
	if err := r.Run(ctx, a.makeTree()...); err != nil {
		return err
	}
	r.Printf("tree: %s\n", a.WS.Tree())
	r.Done()
	return nil
}

// Apply puts the series on the base tree, one commit per patch.
func (a *App) Apply(ctx context.Context) error {
	r := a.reporter("apply")
	if err := r.Run(ctx, a.apply()...); err != nil {
		return err
	}
	r.Printf("tree: %s\n", a.WS.Tree())
	r.Done()
	return nil
}

// Export writes the tree's commits as patch files.
func (a *App) Export(ctx context.Context) error {
	return a.do(ctx, "export", progress.Task{Name: "write the patch files", Do: a.export}, progress.Task{Name: "patch series and feature gates", Do: a.lintSeries})
}

func (a *App) export(ctx context.Context, s *progress.Step) error {
	if !a.tree(nil).Exists() {
		return progress.Refuse("no tree at "+a.WS.Tree(), "the series applied, with your commits on it", "make apply")
	}
	o, err := a.baseOptions()
	if err != nil {
		return err
	}
	changed, err := series.Export(ctx, a.tree(s.Log), a.WS.Series(), o.Version)
	if err != nil {
		return err
	}
	patches, err := series.Read(a.WS.Series())
	if err != nil {
		return err
	}
	if err := overrides.WriteList(a.overridesList(), patches); err != nil {
		return err
	}
	if len(changed) == 0 {
		s.Sayf("no patch changed")
		return nil
	}
	s.Sayf("wrote %s", strings.Join(changed, ", "))
	return nil
}
