// Command capacityv2 maintains the KEP-5925 patch series on Kubernetes: it
// assembles the base tree, applies and exports the patches, checks, builds and
// packs them, and runs a local cluster. `make help` lists the same verbs.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/cluster"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/node"
	"capacityv2.internal/scripts/verbs"
	"capacityv2.internal/scripts/workspace"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := errors.Join(gitrepo.LeaveRepository(), root().ExecuteContext(ctx)); err != nil {
		fmt.Fprintf(os.Stderr, "\n%s\n", message(err))
		os.Exit(1)
	}
}

// message is what is printed for an error. Other errors can be with that of an
// interrupt, such as what is left of a cluster.
func message(err error) string {
	if errors.Is(err, context.Canceled) {
		return "interrupted: " + err.Error()
	}
	return "error: " + err.Error()
}

// root builds the command with its verbs.
func root() *cobra.Command {
	app := &verbs.App{Out: os.Stdout}
	cmd := &cobra.Command{
		Use:           "capacityv2",
		Short:         "Maintain the KEP-5925 patch series on Kubernetes",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			ws, err := workspace.Find(".")
			app.WS = ws
			return err
		},
	}
	cmd.PersistentFlags().StringVar(&app.Source, "kubernetes-src", "", "git checkout of Kubernetes at the pinned tag, from which the tree is made instead of from Go modules")
	cmd.AddCommand(verbs.Commands(app)...)

	// The first process of a cluster's node; not for people.
	cmd.AddCommand(&cobra.Command{
		Use: cluster.InitVerb, Hidden: true, Args: cobra.ExactArgs(1),
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE:              func(c *cobra.Command, args []string) error { return node.Init(c.Context(), args[0]) },
	})
	return cmd
}
