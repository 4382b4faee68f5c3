package patch

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/ground/cli"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch/series"
)

func exportVerb() *cobra.Command {
	return cli.Verb("export", "Write the commits of the trees back as patch files", `
The bytes depend on nothing but the commits. A patch that has not changed is not touched.
tree.lock is written, too.`, "", func(ctx context.Context, ws workspace.Workspace) error {
		return ws.Run(ctx, "export", ws.Each("write the patch files", "", func(ctx context.Context, p workspace.Project, s *run.Step) error {
			return export(ctx, ws, p, s)
		}), Lint(ws))
	})
}

// export writes the commits of the tree of a project as patch files.
func export(ctx context.Context, ws workspace.Workspace, p workspace.Project, s *run.Step) error {
	repo := p.Repo(s.Log)
	if !repo.Exists() {
		return run.Refuse(run.Refusal{
			Found:    "no tree at " + p.Tree(),
			Expected: "the series applied, with your commits on it",
			Run:      "make apply",
		})
	}
	o, err := baseOptions(ws, p)
	if err != nil {
		return err
	}
	changed, err := series.Export(ctx, repo, p.Series(), o.Version)
	if err != nil {
		return err
	}
	if len(changed) == 0 {
		s.Sayf("%s: no patch changed", p.Title)
		return nil
	}
	s.Sayf("%s: wrote %s", p.Title, strings.Join(changed, ", "))
	return nil
}
