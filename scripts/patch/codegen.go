// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/ground/cli"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch/codegen"
)

func codegenVerb() *cobra.Command {
	var project string
	c := cli.Verb("codegen", "Regenerate with upstream's own generators, and show what changed", `
What they write differently is left in the tree, to be committed. The generators of a project are in its project.yaml.`,
		"  capacityv2 codegen --project csi-spec", func(ctx context.Context, ws workspace.Workspace) error {
			runs, generate, err := Generate(ws, project)
			if err != nil {
				return err
			}
			for _, r := range runs {
				generate = append(generate, run.Task{Name: "put what changed into the tree", Do: r.CopyBack})
			}
			// Not Applied: commits of a contributor that are not exported are the point.
			return ws.Run(ctx, "codegen", append(Bases(ws, ""), generate...)...)
		})
	c.Flags().StringVar(&project, "project", "", "upstream project, a `FOLDER` of patches/ (default: all that have generators)")
	return c
}

// Generate returns runs of the generators of a project, or of all if its name is "", and their tasks.
func Generate(ws workspace.Workspace, project string) (runs []*codegen.Run, tasks []run.Task, err error) {
	projects, err := ws.Named(project)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range projects {
		if len(p.Generators) == 0 {
			continue
		}
		r := codegen.NewRun(ws, p)
		runs, tasks = append(runs, r), append(tasks, r.Tasks()...)
	}
	if len(runs) == 0 {
		return nil, nil, run.Refuse(project+" has no generated code", "a project whose project.yaml names generators", "make codegen")
	}
	return runs, tasks, nil
}
