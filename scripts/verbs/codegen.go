package verbs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/codegen"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/workspace"
)

func codegenCommand(a *App) *cobra.Command {
	var project, scope string
	c := verb("codegen", "Regenerate with upstream's own generators, and show what changed", `
What they write differently is left in the tree, to be committed.`,
		"  capacityv2 codegen --project csi-spec", func(ctx context.Context) error { return a.Codegen(ctx, project, scope) })
	c.Flags().StringVar(&project, "project", "", "upstream project, a folder of patches/ (default: all that have generators)")
	c.Flags().StringVar(&scope, "scope", "storage", "storage: what the series can influence; all: every generator")
	return c
}

// Codegen regenerates, shows what changed, and leaves it in the trees for a commit. It
// does so for one project, or for all of them if it is "".
func (a *App) Codegen(ctx context.Context, project, scope string) error {
	s, err := codegen.ParseScope(scope)
	if err != nil {
		return err
	}
	generate, results, err := a.generate(project, s)
	if err != nil {
		return err
	}
	r := a.reporter("codegen")
	// Not apply: commits of a contributor that are not exported are the point.
	if err := r.Run(ctx, append(a.makeTree(), generate...)...); err != nil {
		return err
	}
	for _, res := range results {
		if err := res.CopyBack(ctx); err != nil {
			return err
		}
		if len(res.Changed) > 0 {
			r.Printf("%s\n%d files changed in %s; commit them (CONTRIBUTING.md says in which patch), then make export\n", res.Diff, len(res.Changed), res.Tree())
		}
	}
	r.Done()
	return nil
}

// generate returns the tasks that run the generators of the projects that have some, and
// what the tasks fill.
func (a *App) generate(project string, scope codegen.Scope) ([]progress.Task, []*codegen.Result, error) {
	projects, err := a.WS.Projects()
	if err != nil {
		return nil, nil, err
	}
	if project != "" {
		p, err := a.WS.Project(project)
		if err != nil {
			return nil, nil, err
		}
		if p.Generators == "" {
			return nil, nil, progress.Refuse(p.Title+" has no generated code", "a project whose project.yaml names generators", "make codegen")
		}
		projects = []workspace.Project{p}
	}
	var tasks []progress.Task
	var results []*codegen.Result
	for _, p := range projects {
		res := &codegen.Result{}
		switch p.Generators {
		case "":
			continue
		case "spec":
			tasks = append(tasks, codegen.SpecTasks(p, res)...)
		case "update-scripts":
			tasks = append(tasks, codegen.Tasks(a.WS, scope, res)...)
		default:
			return nil, nil, progress.Refuse(fmt.Sprintf("generators %q in project.yaml of %s", p.Generators, p.Title), "spec, update-scripts or none", "")
		}
		results = append(results, res)
	}
	return tasks, results, nil
}
