// SPDX-License-Identifier: Apache-2.0

// Command capacityv2 maintains the KEP-5925 patch series on Kubernetes: it
// assembles the base tree, applies and exports the patches, checks, builds and
// packs them, and runs a local cluster. `make help` lists the verbs.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/build"
	"capacityv2.internal/scripts/check"
	"capacityv2.internal/scripts/cluster"
	"capacityv2.internal/scripts/cluster/local"
	"capacityv2.internal/scripts/cluster/node"
	"capacityv2.internal/scripts/ground/cli"
	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/patch"
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

// root builds the command with the verbs of each wing.
func root() *cobra.Command {
	cmd := cli.Root("capacityv2", "Maintain the KEP-5925 patch series on Kubernetes")
	cli.Add(cmd, "Use", cluster.Verbs()...)
	cli.Add(cmd, "Use", build.Verbs()...)
	cli.Add(cmd, "Patch", patch.Verbs()...)
	cli.Add(cmd, "Check", check.Verbs()...)
	// The first process of a cluster's node; not for people.
	cmd.AddCommand(&cobra.Command{
		Use: local.InitVerb, Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return node.Init(c.Context(), args[0]) },
	})
	return cmd
}
