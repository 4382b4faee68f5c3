// SPDX-License-Identifier: Apache-2.0

// Package patch has the verbs that make and change the patched trees.
package patch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch/base"
	"capacityv2.internal/scripts/patch/series"
)

// Verbs returns those of this wing.
func Verbs() []*cobra.Command {
	return []*cobra.Command{applyVerb(), exportVerb(), rebaseVerb(), codegenVerb()}
}

// treeDisk is the GiB that a tree with its history needs.
const treeDisk = 2

// Bases checks the machine and makes the base trees of a project, or of all if its name is "".
func Bases(ws workspace.Workspace, project string) []run.Task {
	return []run.Task{{Name: "check the machine", Do: func(ctx context.Context, _ *run.Step) error {
		if err := toolchain.RequirePrograms(ctx, "git"); err != nil {
			return err
		}
		if err := toolchain.RequireGo(ctx); err != nil {
			return err
		}
		return toolchain.RequireDisk(ws.Work, treeDisk)
	}}, ws.Each("base trees", project, func(ctx context.Context, p workspace.Project, s *run.Step) error {
		o, err := baseOptions(ws, p)
		if err != nil {
			return err
		}
		return base.Ensure(ctx, p.Tree(), o, s)
	})}
}

// Trees makes the trees of a project, or of all if its name is "", and puts the series on them.
func Trees(ws workspace.Workspace, project string) []run.Task {
	return append(Bases(ws, project), run.Task{Name: "apply the series", Do: func(ctx context.Context, s *run.Step) error {
		projects, err := ws.Named(project)
		if err != nil {
			return err
		}
		var errs []error // of all: the lock of one must not hide that of another
		for _, p := range projects {
			s.Sayf("%s: %s", p.Title, p.Tree())
			if err := series.Apply(ctx, p.Repo(s.Log), p.Series(), s); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", p.Name, err))
			}
		}
		return errors.Join(errs...)
	}})
}

// Applied makes all trees, and then come further tasks.
func Applied(ws workspace.Workspace, further ...run.Task) []run.Task {
	return slices.Concat(Trees(ws, ""), further)
}

// baseOptions reads the pinned version.
func baseOptions(ws workspace.Workspace, p workspace.Project) (base.Options, error) {
	v, err := base.PinnedVersion(p.Pin(), p.Module)
	o := base.Options{Title: p.Title, Module: p.Module, Pin: p.Pin(), Version: v, Staging: p.Staging, Workspace: p.Series()}
	if p.Staging {
		o.Checkout = ws.Checkout
	}
	return o, err
}

// Lint checks the patch files and feature-gates.yaml.
func Lint(ws workspace.Workspace) run.Task {
	return run.Task{Name: "patch series and feature gates", Do: func(context.Context, *run.Step) error {
		projects, err := ws.Projects()
		if err != nil {
			return err
		}
		for _, p := range projects {
			if err := series.Lint(p.Series(), rules(p)); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
		}
		_, err = ws.Gates()
		return err
	}}
}

func rules(p workspace.Project) series.Rules {
	return series.Rules{Generated: p.Generated, MixGenerated: p.MixGenerated}
}
