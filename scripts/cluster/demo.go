// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/build"
	"capacityv2.internal/scripts/cluster/local"
	"capacityv2.internal/scripts/ground/cli"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
)

func demoVerb() *cobra.Command {
	return cli.Verb("demo", "Show the stories of the KEP on a local cluster, without and with the series, and draw them", `
Each story is told twice: with the scheduler and the provisioner as they were released, and
with those of the series. A table fills while it runs, for about five minutes after the
build. It brings up a cluster of three nodes, and ends it. The picture is in _work/demo; a
copy of it in docs/images is for the README.`, "", demo)
}

// demo shows the stories of the KEP on a cluster of its own, without and with the series, and draws a picture of that.
func demo(ctx context.Context, ws workspace.Workspace) error {
	work := filepath.Join(ws.Work, "demo")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	results := filepath.Join(work, "results.json")
	further := []run.Task{build.Stock(ws, "kube-scheduler"), {Name: "build the demonstration", Do: func(ctx context.Context, s *run.Step) error {
		return toolchain.Build(ctx, ws.EndToEnd(), work, s.Log, "./demo")
	}}}
	return OnOwn(ctx, ws, "demo", further, func(st local.Status) error {
		if err := demonstration(ctx, ws, st, work, results).Run(); err != nil {
			return fmt.Errorf("the demonstration: %w\n  logs of the schedulers: %s", err, work)
		}
		picture := filepath.Join(work, "stories.svg")
		ws.Reporter("demo").Printf("picture: %s\n", picture)
		return drawStories(results, picture)
	})
}

// demonstration is the program, with a terminal for its table.
func demonstration(ctx context.Context, ws workspace.Workspace, st local.Status, work, results string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(work, "demo"), "--kubeconfig="+st.Kubeconfig, "--components="+st.Components,
		"--stock-scheduler="+filepath.Join(ws.StockComponents(), "kube-scheduler"), "--logs="+work, "--out="+results)
	cmd.Env = append(os.Environ(), st.Env()...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd
}
