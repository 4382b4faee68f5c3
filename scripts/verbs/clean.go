package verbs

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/cluster"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/series"
)

func cleanCommand(a *App) *cobra.Command {
	var force bool
	c := verb("clean", "Remove what the tooling made", `
That is _work and dist. A cluster that runs, and commits that are not exported, are refused.`,
		"", func(ctx context.Context) error { return a.Clean(ctx, force) })
	c.Flags().BoolVar(&force, "force", false, "even commits that are not exported")
	return c
}

// Clean removes the work folder and dist. Commits that are not exported and a
// running cluster are refused, unless force is set.
func (a *App) Clean(ctx context.Context, force bool) error {
	r := a.reporter("clean")
	if running, err := cluster.Running(a.WS); err != nil {
		return err
	} else if running {
		return progress.Refuse("a local cluster runs from "+a.WS.Cluster(), "none", "make down")
	}
	projects, err := a.WS.Projects()
	if err != nil {
		return err
	}
	for _, p := range projects {
		if repo := gitrepo.Open(p.Tree(), nil); repo.Exists() && !force {
			if err := series.EnsureSafe(ctx, repo); err != nil {
				return errors.Join(err, progress.Refuse("make clean would lose it", "", "make clean FORCE=1 to remove it all the same"))
			}
		}
	}
	if err := errors.Join(os.RemoveAll(a.WS.Work), os.RemoveAll(a.WS.Dist())); err != nil {
		return err
	}
	r.Printf("removed %s and %s\n", a.WS.Work, a.WS.Dist())
	return nil
}
