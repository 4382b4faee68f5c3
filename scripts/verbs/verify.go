package verbs

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/prove"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/toolchain"
	"capacityv2.internal/scripts/workspace"
)

func verifyCommand(a *App) *cobra.Command {
	var since string
	c := verb("verify", "Check round trip, tree lock, gates, each prefix, and that generated code is up to date", `
Every prefix of a series has to build and to pass the tests of the packages that it touches.
A prefix that was verified before is not verified again.`, "", func(ctx context.Context) error { return a.Verify(ctx, since) })
	c.Flags().StringVar(&since, "since", "", "leave out the prefixes of Kubernetes that are those of this commit, which was verified")
	return c
}

// Verify checks what the patches claim: that they apply, are the export of
// their commits, are locked, need no regeneration, and build one by one. Since is a commit whose prefixes
// are verified, "" for none.
func (a *App) Verify(ctx context.Context, since string) error {
	runs, generate, err := a.generate("")
	if err != nil {
		return err
	}
	return a.do(ctx, "verify", slices.Concat([]run.Task{{Name: "patch series and feature gates", Do: a.lintSeries}}, a.apply(
		a.each("round trip and tree lock", "", a.roundTrip),
		run.Task{Name: "Go version and feature gates against the tree", Do: a.verifyGates},
		a.each("each prefix builds and passes the tests it touches", "", func(ctx context.Context, p workspace.Project, s *run.Step) error {
			return prove.Prefixes(ctx, a.WS, p, since, s)
		}),
	), generate, []run.Task{{Name: "generated code is up to date", Do: func(context.Context, *run.Step) error {
		var errs []error
		for _, r := range runs {
			errs = append(errs, r.Verify())
		}
		return errors.Join(errs...)
	}}})...)
}

func (a *App) roundTrip(ctx context.Context, p workspace.Project, s *run.Step) error {
	return series.RoundTrip(ctx, p.Repo(s.Log), p.Series(), p.Tree()+"-verify", s)
}

func (a *App) verifyGates(ctx context.Context, s *run.Step) error {
	list, err := a.WS.Gates()
	if err != nil {
		return err
	}
	if err := toolchain.CheckVersion(filepath.Join(a.WS.Tree(), ".go-version")); err != nil {
		return err
	}
	return list.Check(ctx, a.tree(s.Log), base.Ref)
}
