package verbs

import (
	"context"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/codegen"
	"capacityv2.internal/scripts/run"
)

func codegenCommand(a *App) *cobra.Command {
	var project string
	c := verb("codegen", "Regenerate with upstream's own generators, and show what changed", `
What they write differently is left in the tree, to be committed. The generators of a project are in its project.yaml.`,
		"  capacityv2 codegen --project csi-spec", func(ctx context.Context) error { return a.Codegen(ctx, project) })
	c.Flags().StringVar(&project, "project", "", "upstream project, a folder of patches/ (default: all that have generators)")
	return c
}

// Codegen regenerates, shows what changed, and leaves it in the trees for a commit. It does so for one project, or for all
// of them if it is "".
func (a *App) Codegen(ctx context.Context, project string) error {
	runs, generate, err := a.generate(project)
	if err != nil {
		return err
	}
	for _, r := range runs {
		generate = append(generate, run.Task{Name: "put what changed into the tree", Do: r.CopyBack})
	}
	// Not apply: commits of a contributor that are not exported are the point.
	return a.do(ctx, "codegen", append(a.makeTree(), generate...)...)
}

// generate returns runs of the generators of a project, or of all, and their tasks.
func (a *App) generate(project string) (runs []*codegen.Run, tasks []run.Task, err error) {
	projects, err := a.projects(project)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range projects {
		if len(p.Generators) == 0 {
			continue
		}
		r := codegen.NewRun(a.WS, p)
		runs, tasks = append(runs, r), append(tasks, r.Tasks()...)
	}
	if len(runs) == 0 {
		return nil, nil, run.Refuse(project+" has no generated code", "a project whose project.yaml names generators", "make codegen")
	}
	return runs, tasks, nil
}
