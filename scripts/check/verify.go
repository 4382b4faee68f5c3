// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/check/eachpatch"
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
	var only *regexp.Regexp
	var long bool
	c := cli.Verb("verify", "Check round trip, tree lock, gates and generated code, and the patches that have changed, one by one", `
With each patch that has changed since the commit before the last one, and without later patches, the tree has to build and to
pass the tests of the packages that the patch touches. And the patch has to be needed: the test that Proven-By names fails
without it. Patches of class feature, fix and perf are tried; for the others it says why not. A fix is tried on the base
alone, too, as it goes upstream.

With --only, it checks only the patches whose file name matches. With --long, it checks all of them.
What has passed is remembered in _work/verified, and is not tried again.`, "  capacityv2 verify --only 0023", func(ctx context.Context, ws workspace.Workspace) error {
		return verify(ctx, ws, only, long)
	})
	cli.PatternFlag(c, &only, "only", "only patches whose file name matches")
	longFlag(c, &long, "all patches")
	return c
}

// verify checks what the patches claim: that they apply, are the export of their commits, are locked, and need no
// regeneration; and of some that they build one by one, and are needed.
func verify(ctx context.Context, ws workspace.Workspace, only *regexp.Regexp, long bool) error {
	tasks := append([]run.Task{patch.Lint(ws)}, patch.Trees(ws, "")...)
	var selected eachpatch.Selection
	var err error
	switch {
	case only != nil:
		selected, err = eachpatch.Matching(ws, only)
	case long:
		selected = eachpatch.All
	default:
		selected, err = eachpatch.Changed(ctx, ws)
	}
	if err != nil {
		return err
	}
	if only == nil {
		runs, generate, err := patch.Generate(ws, "")
		if err != nil {
			return err
		}
		tasks = slices.Concat(tasks, []run.Task{
			ws.Each("round trip and tree lock", "", func(ctx context.Context, p workspace.Project, s *run.Step) error {
				return series.RoundTrip(ctx, p.Repo(s.Log), p.Series(), p.Tree()+"-verify", s)
			}),
			ws.Task("Go version and feature gates against the tree", verifyGates),
		}, generate, []run.Task{{Name: "generated code is up to date", Do: func(context.Context, *run.Step) error {
			var errs []error
			for _, r := range runs {
				errs = append(errs, r.Verify())
			}
			return errors.Join(errs...)
		}}})
	}
	plan, err := eachpatch.NewPlan(ws, selected)
	if err != nil {
		return err
	}
	return ws.Run(ctx, "verify", append(tasks, plan.Tasks...)...)
}

func verifyGates(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	list, err := ws.Gates()
	if err != nil {
		return err
	}
	if err := toolchain.CheckVersion(filepath.Join(ws.Tree(), toolchain.VersionFile)); err != nil {
		return err
	}
	return list.Check(ctx, gitrepo.Open(ws.Tree(), s.Log), base.Ref)
}
