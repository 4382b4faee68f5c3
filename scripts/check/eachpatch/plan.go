// SPDX-License-Identifier: Apache-2.0

// Package eachpatch shows what each patch claims: with those before it, the tree builds and passes its tests, and without
// it, the test that it names fails. A fix does so on the base alone, too.
package eachpatch

import (
	"context"
	"fmt"
	"strings"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch/series"
)

// Plan is what has to be proven about patches, and what has come out.
type Plan struct {
	// Tasks prove them, on applied trees.
	Tasks []run.Task

	ws            workspace.Workspace
	proven, known int
	bad           []string
}

// NewPlan plans the checks of the selected patches of all projects.
func NewPlan(ws workspace.Workspace, selected Selection) (*Plan, error) {
	projects, err := ws.Projects()
	if err != nil {
		return nil, err
	}
	plan := &Plan{ws: ws}
	for _, p := range projects {
		if err := plan.add(p, selected); err != nil {
			return nil, err
		}
	}
	if len(plan.Tasks) == 0 {
		return &Plan{Tasks: []run.Task{{Name: "no patch has changed", Do: func(context.Context, *run.Step) error { return nil }}}}, nil
	}
	plan.Tasks = append(plan.Tasks, run.Task{Name: "are all of them needed?", Do: plan.judge})
	return plan, nil
}

// add adds tasks for the selected patches of a project.
func (plan *Plan) add(p workspace.Project, selected Selection) error {
	patches, err := series.Read(p.Series())
	if err != nil {
		return err
	}
	var cases, others []Case
	for _, c := range casesOf(patches) {
		switch {
		case !selected(p.Name, c.Patch.Name):
		case c.provable():
			cases = append(cases, c)
		default:
			others = append(others, c)
		}
	}
	if len(cases)+len(others) == 0 {
		return nil
	}
	plan.Tasks = append(plan.Tasks, run.Task{Name: "each patch of " + p.Title + " builds and passes the tests it touches", Do: func(ctx context.Context, s *run.Step) error {
		return prefixes(ctx, plan.ws, p, selected, s)
	}})
	if len(others) > 0 {
		plan.Tasks = append(plan.Tasks, run.Task{Name: "patches of " + p.Title + " that no test can prove", Do: func(ctx context.Context, s *run.Step) error {
			for _, c := range others {
				reason, err := c.reason(ctx, p.Repo(s.Log))
				if err != nil {
					return err
				}
				s.Sayf("%s: %s", c.Patch.Name, reason)
			}
			return nil
		}})
	}
	if len(cases) == 0 {
		return nil
	}
	pr := &prover{tree: p.Repo(nil), dir: p.Tree() + "-prove", patches: len(patches)}
	plan.Tasks = append(plan.Tasks, run.Task{Name: "work tree of " + p.Title, Do: func(ctx context.Context, s *run.Step) (err error) {
		if pr.record, err = recordOf(ctx, plan.ws, p, s.Log); err != nil {
			return err
		}
		return pr.prepare(ctx, s)
	}})
	for _, c := range cases {
		plan.Tasks = append(plan.Tasks, run.Task{Name: p.Name + " " + c.Patch.Name, Do: func(ctx context.Context, s *run.Step) error {
			return plan.prove(ctx, pr, c, p.Name, s)
		}})
		if c.standsAlone() {
			plan.Tasks = append(plan.Tasks, run.Task{Name: p.Name + " " + c.Patch.Name + " alone", Do: func(ctx context.Context, s *run.Step) error {
				return plan.proveAlone(ctx, pr, c, p.Name, s)
			}})
		}
	}
	return nil
}

// prove proves one patch, and counts it.
func (plan *Plan) prove(ctx context.Context, pr *prover, c Case, project string, s *run.Step) error {
	proof, err := pr.proof(ctx, c)
	if err != nil {
		return err
	}
	if pr.record.has(proof...) {
		s.Sayf("%s:%s fails without it, as was seen before", c.Package, c.Test)
		plan.proven++
		plan.known++
		return nil
	}
	verdict, err := pr.prove(ctx, c, s)
	if err != nil {
		return err
	}
	line := fmt.Sprintf("%s:%s %s", c.Package, c.Test, verdict)
	if verdict == missing {
		if from, err := pr.addedBy(ctx, c); err == nil && from != "" {
			line += fmt.Sprintf("; it comes with %q", from)
		}
	}
	s.Sayf("%s", line)
	if verdict.proven() {
		plan.proven++
		return pr.record.add(proof...)
	}
	plan.bad = append(plan.bad, fmt.Sprintf("%s %s: %s (log: %s)", project, c.Patch.Name, line, s.LogPath))
	return nil
}

// judge refuses patches that are not needed.
func (plan *Plan) judge(_ context.Context, s *run.Step) error {
	if len(plan.bad) > 0 {
		return run.Refuse("not proven:\n    "+strings.Join(plan.bad, "\n    "), "Proven-By names a test that the patch or an earlier one brings, "+
			"and that fails without the patch; a fix brings it itself, and needs no other patch",
			"git rebase -i in the tree to amend the commit, then make export")
	}
	s.AtEnd("verify: patches that are needed: %d", plan.proven)
	if plan.known > 0 {
		s.AtEnd(", %d of which was known; to see it again: rm -r %s", plan.known, verified(plan.ws))
	}
	s.AtEnd("\n")
	return nil
}
