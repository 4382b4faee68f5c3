// Package prove shows what each patch claims: with those before it, the tree builds and passes its tests, and without
// it, the test that it names fails.
package prove

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/workspace"
)

var everything = regexp.MustCompile("")

// Options select patches. The zero value selects all.
type Options struct {
	// Patch is for names of patch files; nil matches all.
	Patch *regexp.Regexp
	// Since is a commit of this repository: only patches that differ from it.
	Since string
}

// Plan is what has to be proven about patches, and what has come out.
type Plan struct {
	// Tasks prove them, on applied trees. None: no patch has changed.
	Tasks []run.Task
	// Note is for people: a choice that was not asked for.
	Note string

	proven int
	bad    []string
}

// NewPlan chooses patches of all projects.
func NewPlan(ctx context.Context, ws workspace.Workspace, o Options) (*Plan, error) {
	projects, err := ws.Projects()
	if err != nil {
		return nil, err
	}
	from, note, err := earlier(ctx, gitrepo.Open(ws.Root, nil), o.Since)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Note: note}
	matched := false
	var bases []string // others compile against it
	for _, p := range projects {
		if p.Staging {
			bases = append(bases, p.Series())
		}
	}
	for _, p := range projects {
		chosen := func(c Case) bool {
			matches := cmp.Or(o.Patch, everything).MatchString(c.Patch.Name)
			matched = matched || matches
			return matches
		}
		if from != "" {
			changed, err := changedPatches(ctx, gitrepo.Open(ws.Root, nil), from, p.Series(), append(bases, p.Series())...)
			if err != nil {
				return nil, err
			}
			named := chosen
			chosen = func(c Case) bool { return named(c) && slices.Contains(changed, c.Patch.Name) }
		}
		if err := plan.add(p, chosen); err != nil {
			return nil, err
		}
	}
	switch {
	case len(plan.Tasks) > 0:
		plan.Tasks = append(plan.Tasks, run.Task{Name: "are all of them needed?", Do: plan.judge})
	case !matched:
		return nil, run.Refuse(fmt.Sprintf("no patch matches %q", cmp.Or(o.Patch, everything)), "a regular expression for names of patches", "make prove PATCH=0013")
	default:
		plan.Note = "no patch has changed since " + o.Since
	}
	return plan, nil
}

// add adds tasks for the chosen patches of a project.
func (plan *Plan) add(p workspace.Project, chosen func(Case) bool) error {
	patches, err := series.Read(p.Series())
	if err != nil {
		return err
	}
	var cases, others []Case
	for _, c := range casesOf(patches) {
		switch {
		case !chosen(c):
		case c.provable():
			cases = append(cases, c)
		default:
			others = append(others, c)
		}
	}
	if len(others) > 0 {
		plan.Tasks = append(plan.Tasks, run.Task{Name: "patches of " + p.Title + " that no test can prove", Do: func(ctx context.Context, s *run.Step) error {
			for _, c := range others {
				why, err := c.why(ctx, p.Repo(s.Log))
				if err != nil {
					return err
				}
				s.Sayf("%s: %s", c.Patch.Name, why)
			}
			return nil
		}})
	}
	if len(cases) == 0 {
		return nil
	}
	pr := &prover{tree: p.Repo(nil), dir: p.Tree() + "-prove", patches: len(patches)}
	plan.Tasks = append(plan.Tasks, run.Task{Name: "work tree of " + p.Title, Do: pr.prepare})
	for _, c := range cases {
		plan.Tasks = append(plan.Tasks, run.Task{Name: p.Name + " " + c.Patch.Name, Do: func(ctx context.Context, s *run.Step) error {
			return plan.prove(ctx, pr, c, p.Name, s)
		}})
	}
	return nil
}

// prove proves one patch, and counts it.
func (plan *Plan) prove(ctx context.Context, pr *prover, c Case, project string, s *run.Step) error {
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
	} else {
		plan.bad = append(plan.bad, fmt.Sprintf("%s %s: %s (log: %s)", project, c.Patch.Name, line, s.LogPath))
	}
	return nil
}

// judge refuses patches that are not needed.
func (plan *Plan) judge(_ context.Context, s *run.Step) error {
	if len(plan.bad) > 0 {
		return run.Refuse("not proven:\n    "+strings.Join(plan.bad, "\n    "),
			"Proven-By names a test that the patch or an earlier one brings, and that fails without the patch", "git rebase -i in the tree to amend the commit, then make export")
	}
	s.AtEnd("prove: %d patches are needed\n", plan.proven)
	return nil
}
