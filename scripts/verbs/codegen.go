package verbs

import (
	"context"

	"capacityv2.internal/scripts/codegen"
	"capacityv2.internal/scripts/progress"
)

// specProject is the one whose generators are those of the CSI spec.
const specProject = "csi-spec"

// Codegen regenerates, shows what changed, and leaves it in the trees for a commit.
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
	results, err := a.generate(ctx, s, r)
	if err != nil {
		return err
	}
	for _, res := range results {
		if err := res.CopyBack(ctx); err != nil {
			return err
		}
		if len(res.Changed) > 0 {
			r.Printf("%s\n%d files changed in %s; commit them in a patch of Class: generated, then make export\n", res.Diff, len(res.Changed), res.Tree())
		}
	}
	r.Done()
	return nil
}

// generate runs the generators of the projects that have some.
func (a *App) generate(ctx context.Context, scope codegen.Scope, r *progress.Reporter) ([]*codegen.Result, error) {
	spec, err := a.WS.Project(specProject)
	if err != nil {
		return nil, err
	}
	ofSpec, err := codegen.RunSpec(ctx, spec, r)
	if err != nil {
		return nil, err
	}
	ofKubernetes, err := codegen.Run(ctx, a.WS, scope, r)
	return []*codegen.Result{ofSpec, ofKubernetes}, err
}
