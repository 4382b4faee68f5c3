package verbs

import (
	"context"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/cluster"
	"capacityv2.internal/scripts/run"
)

func downCommand(a *App) *cobra.Command {
	return verb("down", "End the local cluster and remove what it made, except its logs", `
It ends what up has started, and removes what up has made on this machine: processes,
namespaces, links, control groups and folders. The logs stay. Commits in the trees, and
what was built, stay too.`, "", a.Down)
}

// Down ends the local cluster.
func (a *App) Down(ctx context.Context) error { return a.end(ctx, "") }

// end ends the cluster with an ID, or any if that is "".
func (a *App) end(ctx context.Context, id string) error {
	return a.do(ctx, "down", run.Task{Name: "end the cluster", Do: func(ctx context.Context, s *run.Step) error {
		return cluster.Down(ctx, a.WS, id, s)
	}})
}
