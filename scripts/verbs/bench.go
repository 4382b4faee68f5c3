package verbs

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/bench"
	"capacityv2.internal/scripts/release"
	"capacityv2.internal/scripts/run"
)

// BenchOptions are the flags of the verb. If Only is nil, it matches all.
type BenchOptions struct {
	Suite      string
	Only       *regexp.Regexp
	ReportOnly bool
	Runs       int
}

const (
	schedulerSuite   = "scheduler"
	chainSuite       = "chain"
	provisionerSuite = "provisioner"
)

// suiteNames are those of all suites, for people.
const suiteNames = schedulerSuite + ", " + chainSuite + " or " + provisionerSuite

func benchCommand(a *App) *cobra.Command {
	var o BenchOptions
	c := verb("bench", "Run the benchmarks, with upstream's code in the same run, and write docs/benchmarks", `
The suite scheduler takes three hours on a machine that does nothing else, one of them for the page
queue.md and one for scale.md. What has been measured stays when another part of a page is measured.

The suite chain measures scheduler, provisioner and reference driver together, in two hours: a
central provisioner for 100 nodes first, without a cluster, and then on a cluster of three nodes,
whose scheduler is replaced for each scenario. The report has what one call has measured: with
--only, it is written beside the logs, and --only central is the first part alone.

The suite provisioner measures a central provisioner for 2000 nodes, what its watchers get, and two
schedulers with pods of their own, in half an hour and without a cluster. With --only, the page is
written beside the logs.`,
		"  capacityv2 bench --only 'filter pass'\n  capacityv2 bench --suite chain --runs 1 --only '^tight/InFlight'", func(ctx context.Context) error { return a.Bench(ctx, o) })
	c.Flags().StringVar(&o.Suite, "suite", schedulerSuite, "what to measure: "+suiteNames)
	patternFlag(c, &o.Only, "only", "only runs, or scenarios SCENARIO/SCHEDULER/PROVISIONER, whose name matches")
	c.Flags().BoolVar(&o.ReportOnly, "report-only", false, "write the report of the scheduler again from the results of the last run")
	c.Flags().IntVar(&o.Runs, "runs", 5, "how often the suite chain measures each scenario")
	return c
}

// Bench runs the benchmarks of a suite and writes its report.
func (a *App) Bench(ctx context.Context, o BenchOptions) error {
	switch {
	case o.Suite == schedulerSuite:
		return a.benchScheduler(ctx, o)
	case o.Suite != chainSuite && o.Suite != provisionerSuite:
		return run.Refuse(fmt.Sprintf("no suite %q", o.Suite), suiteNames, "make bench SUITE=chain")
	case o.ReportOnly:
		return run.Refuse("--report-only for the suite "+o.Suite, "the suite scheduler: only that keeps results", "make bench REPORT_ONLY=1")
	case o.Suite == provisionerSuite:
		return a.benchProvisioner(ctx, o.Only)
	case o.Runs <= 0:
		return run.Refuse(fmt.Sprintf("--runs is %d", o.Runs), "a number above 0", "make bench SUITE=chain RUNS=1")
	}
	return a.chain(ctx, o)
}

// benchScheduler measures the runs of one page after another. It keeps the results of each as soon as it has them,
// and those of runs that are not to be measured.
func (a *App) benchScheduler(ctx context.Context, o BenchOptions) error {
	runs, err := bench.Runs()
	if err != nil {
		return err
	}
	var tasks []run.Task
	for _, page := range []string{"scheduler", "queue", "scale"} {
		some, err := a.benchPage(o, page, slices.DeleteFunc(slices.Clone(runs), func(r bench.Run) bool { return r.Page != page }))
		if err != nil {
			return err
		}
		tasks = append(tasks, some...)
	}
	switch {
	case o.ReportOnly:
		return a.do(ctx, "bench", tasks...)
	case len(tasks) == 0:
		var names []string
		for _, r := range runs {
			names = append(names, r.Name)
		}
		return run.Refuse(fmt.Sprintf("no run matches %q", o.Only), "one of: "+strings.Join(names, "; "), "make bench ONLY='worst cases'")
	}
	return a.do(ctx, "bench", a.apply(append([]run.Task{a.buildEtcd()}, tasks...)...)...)
}

// benchPage returns the tasks for those runs of a page that are to be measured, and for the page; none if there
// are no such runs.
func (a *App) benchPage(o BenchOptions, name string, runs []bench.Run) ([]run.Task, error) {
	page := bench.Report{Raw: filepath.Join(a.benchmarks(), name+".txt"), Runs: runs}
	write := run.Task{Name: "write " + name + ".md", Do: func(_ context.Context, s *run.Step) error {
		files, err := page.Write()
		s.Sayf("writing %s", strings.Join(files, ", "))
		return err
	}}
	if o.ReportOnly {
		return []run.Task{write}, nil
	}
	v, err := release.ReadVersion(a.WS)
	if err != nil {
		return nil, err
	}
	results := bench.Results{}
	if o.Only != nil {
		if results, err = bench.ReadResults(page.Raw); err != nil {
			return nil, err
		}
	}
	folders := map[string]string{"kubernetes": a.WS.Tree(), "test-integration": a.integrationTests()}
	var tasks []run.Task
	for _, r := range runs {
		if !cmp.Or(o.Only, everything).MatchString(r.Name) {
			continue
		}
		tasks = append(tasks, run.Task{Name: r.Name, Do: func(ctx context.Context, s *run.Step) error {
			measured, err := r.Measure(ctx, v.String(), folders[r.In], []string{a.binPath()}, s.Log)
			if err != nil {
				return err
			}
			results[r.Name] = measured
			return results.Save(page.Raw, runs)
		}})
	}
	if len(tasks) > 0 {
		tasks = append(tasks, write)
	}
	return tasks, nil
}

// benchmarks is the folder of reports.
func (a *App) benchmarks() string { return filepath.Join(a.WS.Root, "docs", "benchmarks") }
