// SPDX-License-Identifier: Apache-2.0

// Package cluster has the verbs for those who use the series: on a local cluster, and what is left of it.
package cluster

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/cluster/local"
	"capacityv2.internal/scripts/ground/cli"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch"
)

// Verbs returns those of this wing.
func Verbs() []*cobra.Command { return []*cobra.Command{upVerb(), downVerb(), demoVerb(), cleanVerb()} }

func downVerb() *cobra.Command {
	return cli.Verb("down", "End the local cluster and remove what it made, except its logs", `
It ends what up has started, and removes what up has made on this machine: processes,
namespaces, links, control groups and folders. The logs stay. Commits in the trees, and
what was built, stay too.`, "", func(ctx context.Context, ws workspace.Workspace) error { return End(ctx, ws, "") })
}

// End ends the cluster with an ID, or any if that is "".
func End(ctx context.Context, ws workspace.Workspace, id string) error {
	return ws.Run(ctx, "down", run.Task{Name: "end the cluster", Do: func(ctx context.Context, s *run.Step) error {
		return local.Down(ctx, ws, id, s)
	}})
}

func cleanVerb() *cobra.Command {
	var force bool
	c := cli.Verb("clean", "Remove what the tooling made", `
That is _work and dist. It refuses before make down has taken away a cluster, and where work of yours would be lost:
commits that are not exported, stashes, branches, or a rebase that has stopped.`,
		"  capacityv2 clean --force", func(ctx context.Context, ws workspace.Workspace) error { return clean(ctx, ws, force) })
	c.Flags().BoolVar(&force, "force", false, "even work of yours")
	return c
}

// clean removes the work folder and dist. It refuses what is left of a cluster, also of one
// that has crashed, and work of a person, unless force is set.
func clean(ctx context.Context, ws workspace.Workspace, force bool) error {
	if st, err := local.StatusOf(ws); err != nil {
		return err
	} else if st.Recorded {
		return run.Refuse(ws.Cluster()+" says what a local cluster made on this machine", "no cluster, nor anything left of one", "make down")
	}
	projects, err := ws.Projects()
	if err != nil {
		return err
	}
	for _, p := range projects {
		if err := patch.EnsureRemovable(ctx, p); err != nil && !force {
			return errors.Join(err, run.Refuse("make clean would delete it", "", "make clean FORCE=1, if it may go"))
		}
	}
	if err := errors.Join(os.RemoveAll(ws.Work), os.RemoveAll(ws.Dist())); err != nil {
		return err
	}
	ws.Reporter("clean").Printf("removed %s and %s\n", ws.Work, ws.Dist())
	return nil
}
