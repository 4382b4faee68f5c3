package check

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/check/prove"
	"capacityv2.internal/scripts/ground/cli"
	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch"
	"capacityv2.internal/scripts/patch/base"
	"capacityv2.internal/scripts/patch/series"
)

func verifyVerb() *cobra.Command {
	var pattern *regexp.Regexp
	var long bool
	c := cli.Verb("verify", "Check round trip, tree lock, gates, each prefix, and that generated code is up to date", `
Every prefix of a series has to build and to pass the tests of the packages that it touches.

With --patch, it checks instead that patches are needed: the test that Proven-By names passes with the patch and fails
without it, both times without the later patches. Patches of class feature, fix and perf are tried; for the others it
says why not. With --long, it checks both, for all patches.

What has passed is remembered in _work/verified, and is not tried again.`, "  capacityv2 verify --patch 0023", func(ctx context.Context, ws workspace.Workspace) error {
		return verify(ctx, ws, pattern, long)
	})
	cli.PatternFlag(c, &pattern, "patch", "only whether patches are needed whose file name matches")
	longFlag(c, &long, "also whether each patch is needed")
	return c
}

// verify checks what the patches claim: that they apply, are the export of their commits, are locked, need no
// regeneration, and build one by one; and that those whose name matches are needed.
func verify(ctx context.Context, ws workspace.Workspace, pattern *regexp.Regexp, long bool) error {
	tasks := append([]run.Task{patch.Lint(ws)}, patch.Trees(ws, "")...)
	if pattern == nil {
		runs, generate, err := patch.Generate(ws, "")
		if err != nil {
			return err
		}
		tasks = slices.Concat(tasks, []run.Task{
			ws.Each("round trip and tree lock", "", func(ctx context.Context, p workspace.Project, s *run.Step) error {
				return series.RoundTrip(ctx, p.Repo(s.Log), p.Series(), p.Tree()+"-verify", s)
			}),
			ws.Task("Go version and feature gates against the tree", verifyGates),
			ws.Each("each prefix builds and passes the tests it touches", "", func(ctx context.Context, p workspace.Project, s *run.Step) error {
				return prove.Prefixes(ctx, ws, p, s)
			}),
		}, generate, []run.Task{{Name: "generated code is up to date", Do: func(context.Context, *run.Step) error {
			var errs []error
			for _, r := range runs {
				errs = append(errs, r.Verify())
			}
			return errors.Join(errs...)
		}}})
		if long {
			pattern = everything
		}
	}
	if pattern != nil {
		plan, err := prove.NewPlan(ws, pattern)
		if err != nil {
			return err
		}
		tasks = append(tasks, plan.Tasks...)
	}
	return ws.Run(ctx, "verify", tasks...)
}

func verifyGates(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	list, err := ws.Gates()
	if err != nil {
		return err
	}
	if err := toolchain.CheckVersion(filepath.Join(ws.Tree(), ".go-version")); err != nil {
		return err
	}
	return list.Check(ctx, gitrepo.Open(ws.Tree(), s.Log), base.Ref)
}
