package verbs

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/cluster"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/workspace"
)

func cleanCommand(a *App) *cobra.Command {
	var force bool
	c := verb("clean", "Remove what the tooling made", `
That is _work and dist. It refuses before make down has taken away a cluster, and where work of yours would be lost:
commits that are not exported, stashes, branches, or a rebase that has stopped.`,
		"  capacityv2 clean --force", func(ctx context.Context) error { return a.Clean(ctx, force) })
	c.Flags().BoolVar(&force, "force", false, "even work of yours")
	return c
}

// Clean removes the work folder and dist. It refuses what is left of a cluster, also of one
// that has crashed, and work of a person, unless force is set.
func (a *App) Clean(ctx context.Context, force bool) error {
	r := a.reporter("clean")
	if st, err := cluster.StatusOf(a.WS); err != nil {
		return err
	} else if st.Recorded {
		return run.Refuse(a.WS.Cluster()+" says what a local cluster made on this machine", "no cluster, nor anything left of one", "make down")
	}
	projects, err := a.WS.Projects()
	if err != nil {
		return err
	}
	for _, p := range projects {
		if err := ensureRemovable(ctx, p); err != nil && !force {
			return errors.Join(err, run.Refuse("make clean would delete it", "", "make clean FORCE=1, if it may go"))
		}
	}
	if err := errors.Join(os.RemoveAll(a.WS.Work), os.RemoveAll(a.WS.Dist())); err != nil {
		return err
	}
	r.Printf("removed %s and %s\n", a.WS.Work, a.WS.Dist())
	return nil
}

// ensureRemovable refuses what would be lost with the trees of a project.
func ensureRemovable(ctx context.Context, p workspace.Project) error {
	if repo := p.Repo(nil); repo.Exists() {
		if err := series.EnsureRemovable(ctx, repo); err != nil {
			return err
		}
	}
	// Not work trees such as that of make verify: they share the configuration of the tree,
	// where a rebase may have stopped before it was taken over.
	configs, err := filepath.Glob(filepath.Join(rebaseDir(p, "v*"), ".git", "config"))
	if err != nil {
		return err
	}
	for _, config := range configs {
		repo := gitrepo.Open(filepath.Dir(filepath.Dir(config)), nil)
		if repo.Applying() || series.Stopped(ctx, repo) {
			return run.Refuse("a rebase is under way in "+repo.Dir, "none", "make rebase again, or remove the folder")
		}
	}
	return nil
}
