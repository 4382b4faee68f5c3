package verbs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/bench"
	"capacityv2.internal/scripts/cluster"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/toolchain"
)

func demoCommand(a *App) *cobra.Command {
	return verb("demo", "Show the stories of the KEP on a local cluster, before and after, and draw them", `
Each story is told twice: with the scheduler and the provisioner as they were released, and
with those of the series. A table fills while it runs, for about five minutes after the
build. It brings up a cluster of three nodes, and ends it. The picture is in _work/demo; a
copy of it in docs/images is for the README.`, "", a.Demo)
}

// Demo shows the stories of the KEP on a cluster of its own, before and after, and draws
// a picture of that.
func (a *App) Demo(ctx context.Context) error {
	work := filepath.Join(a.WS.Work, "demo")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	results := filepath.Join(work, "results.json")
	build := []run.Task{
		{Name: "build the stock scheduler", Do: func(ctx context.Context, s *run.Step) error { return a.buildStock(ctx, s, "kube-scheduler") }},
		{Name: "build the demonstration", Do: func(ctx context.Context, s *run.Step) error {
			return toolchain.Build(ctx, a.endToEndTests(), work, s.Log, "./demo")
		}},
	}
	return a.onChain(ctx, "demo", build, func(st cluster.Status) error {
		if err := a.demonstration(ctx, st, work, results).Run(); err != nil {
			return fmt.Errorf("the demonstration: %w\n  logs of the schedulers: %s", err, work)
		}
		picture := filepath.Join(work, "stories.svg")
		fmt.Fprintf(a.Out, "picture: %s\n", picture)
		return bench.DrawStories(results, picture)
	})
}

// demonstration is the program, with a terminal for its table.
func (a *App) demonstration(ctx context.Context, st cluster.Status, work, results string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(work, "demo"), "--kubeconfig="+st.Kubeconfig, "--components="+st.Components,
		"--stock-scheduler="+filepath.Join(a.WS.StockComponents(), "kube-scheduler"), "--logs="+work, "--out="+results)
	cmd.Env = append(os.Environ(), st.Env()...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd
}
