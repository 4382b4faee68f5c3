// SPDX-License-Identifier: Apache-2.0

// demo shows the stories of KEP-5925 on a cluster with the reference driver (make up
// DRIVER=reference): first with the scheduler and the provisioner as they were released,
// then with those of the series. A table fills while it runs.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/pflag"

	"capacityv2.internal/test-e2e/measure"
)

// The sides of each story.
const (
	stock  = "stock scheduler"
	series = "with the series"
)

// options are the flags.
type options struct {
	kubeconfig, components, stockScheduler, logs, out string
}

func main() {
	var o options
	pflag.StringVar(&o.kubeconfig, "kubeconfig", "", "of the cluster; its scheduler is replaced")
	pflag.StringVar(&o.components, "components", "", "folder with the programs of the cluster")
	pflag.StringVar(&o.stockScheduler, "stock-scheduler", "", "kube-scheduler as it was released")
	pflag.StringVar(&o.logs, "logs", os.TempDir(), "folder for the logs of the schedulers")
	pflag.StringVar(&o.out, "out", "", "file for the results as JSON; none if empty")
	pflag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run tells all stories on both sides.
func run(ctx context.Context, o options) error {
	t := newTable(os.Stdout)
	results := make([]result, 0, 2*len(stories))
	for _, side := range []struct {
		name, log   string
		scheduler   measure.Scheduler
		provisioner measure.Provisioner
	}{
		{stock, "scheduler-stock.log", measure.Scheduler{Program: o.stockScheduler}, measure.Stock},
		{series, "scheduler-series.log", measure.Scheduler{Program: filepath.Join(o.components, "kube-scheduler"), Gate: true}, measure.Patched},
	} {
		t.say("%s: kube-scheduler and external-provisioner start", side.name)
		side.scheduler.Kubeconfig, side.scheduler.Log = o.kubeconfig, filepath.Join(o.logs, side.log)
		process, err := side.scheduler.Start(o.components)
		if err != nil {
			return err
		}
		for _, s := range stories {
			var r result
			if r, err = runStory(ctx, o, s, side.name, side.provisioner, t); err != nil {
				err = fmt.Errorf("story %d, %s: %w", s.Number, side.name, err)
				break
			}
			results = append(results, r)
		}
		process.End()
		if err != nil {
			return err
		}
	}
	t.end()
	if err := write(o.out, results); err != nil {
		return err
	}
	for _, r := range results {
		if r.Side == series && (!r.Done || r.Failed > 0) {
			return fmt.Errorf("story %d, %s: %d of %d pods run, %d volumes were asked for where there was no room; expected %d and 0",
				r.Story, r.Side, r.Running, r.Wanted, r.Failed, r.Wanted)
		}
	}
	return nil
}

func write(file string, results []result) error {
	if file == "" {
		return nil
	}
	b, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}
