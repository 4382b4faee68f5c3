package verbs

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/files"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/workspace"
)

func exportCommand(a *App) *cobra.Command {
	return verb("export", "Write the commits of the trees back as patch files", `
The bytes depend on nothing but the commits. A patch that has not changed is not touched.
tree.lock and the table of docs/kep.md are written, too.`, "", a.Export)
}

// Export writes the commits of each tree as patch files.
func (a *App) Export(ctx context.Context) error {
	return a.do(ctx, "export", a.each("write the patch files", "", a.export), run.Task{Name: "table of the tests that the KEP names", Do: a.kepTests(files.UpdateSection)},
		run.Task{Name: "patch series and feature gates", Do: a.lintSeries})
}

func (a *App) export(ctx context.Context, p workspace.Project, s *run.Step) error {
	repo := p.Repo(s.Log)
	if !repo.Exists() {
		return run.Refuse("no tree at "+p.Tree(), "the series applied, with your commits on it", "make apply")
	}
	o, err := a.baseOptions(p)
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
