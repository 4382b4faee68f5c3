package verbs

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
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
	var patch *regexp.Regexp
	c := verb("verify", "Check round trip, tree lock, gates, each prefix, and that generated code is up to date", `
Every prefix of a series has to build and to pass the tests of the packages that it touches.

With --patch, it checks instead that patches are needed: the test that Proven-By names passes with the patch and fails
without it, both times without the later patches. Patches of class feature, fix and perf are tried; for the others it
says why not.

What has passed is remembered in _work/verified, and is not tried again.`, "  capacityv2 verify --patch 0023", func(ctx context.Context) error { return a.Verify(ctx, patch) })
	patternFlag(c, &patch, "patch", "only whether patches are needed whose file name matches")
	return c
}

// Verify checks what the patches claim: that they apply, are the export of their commits, are locked, need no
// regeneration, and build one by one; or, of those whose name matches, that they are needed.
func (a *App) Verify(ctx context.Context, patch *regexp.Regexp) error {
	if patch != nil {
		plan, err := prove.NewPlan(a.WS, patch)
		if err != nil {
			return err
		}
		return a.do(ctx, "verify", a.apply(plan.Tasks...)...)
	}
	runs, generate, err := a.generate("")
	if err != nil {
		return err
	}
	return a.do(ctx, "verify", slices.Concat([]run.Task{{Name: "patch series and feature gates", Do: a.lintSeries}}, a.apply(
		a.each("round trip and tree lock", "", a.roundTrip),
		run.Task{Name: "Go version and feature gates against the tree", Do: a.verifyGates},
		a.each("each prefix builds and passes the tests it touches", "", func(ctx context.Context, p workspace.Project, s *run.Step) error {
			return prove.Prefixes(ctx, a.WS, p, s)
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
