package verbs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/bench"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/release"
)

// benchReport is the name of the report's files in docs/benchmarks.
const benchReport = "scheduler"

func benchCommand(a *App) *cobra.Command {
	var o BenchOptions
	c := verb("bench", "Run the benchmarks, with upstream's code in the same run, and write docs/benchmarks", `
It takes an hour and a half on a machine that does nothing else. What has been measured
stays when another part is measured.`, "  capacityv2 bench --only 'filter pass'", func(ctx context.Context) error { return a.Bench(ctx, o) })
	patternFlag(c, &o.Only, "only", "only runs whose name matches")
	c.Flags().BoolVar(&o.ReportOnly, "report-only", false, "write the report again from the results of the last run")
	return c
}

// BenchOptions are those of Bench.
type BenchOptions struct {
	// Only is for the names of runs; nil matches all. The results of the others stay.
	Only *regexp.Regexp
	// ReportOnly writes the report again from the results that there are.
	ReportOnly bool
}

// Bench runs the benchmarks and writes the report, when all of them have run.
func (a *App) Bench(ctx context.Context, o BenchOptions) error {
	runs := bench.Runs(a.WS.Tree(), a.WS.Root)
	results := bench.Results{}
	if o.Only != nil || o.ReportOnly {
		text, err := os.ReadFile(filepath.Join(a.benchmarks(), benchReport+".txt"))
		if err != nil {
			return err
		}
		results = bench.ReadResults(text)
	}
	report := progress.Task{Name: "report", Do: func(_ context.Context, s *progress.Step) error {
		return a.writeBenchReport(runs, results.Text(runs), s)
	}}
	if o.ReportOnly {
		return a.do(ctx, "bench", report)
	}
	only := cmp.Or(o.Only, everything)
	tasks := a.apply(progress.Task{Name: "build etcd", Do: a.buildEtcd})
	var names []string
	for _, run := range runs {
		names = append(names, run.Name)
		if !only.MatchString(run.Name) {
			continue
		}
		tasks = append(tasks, progress.Task{Name: run.Name, Do: func(ctx context.Context, s *progress.Step) error {
			measured, err := run.Measure(ctx, []string{a.binPath()}, s.Log)
			results[run.Name] = measured
			return err
		}})
	}
	if !slices.ContainsFunc(names, only.MatchString) {
		return progress.Refuse(fmt.Sprintf("no run matches %q", only), "one of: "+strings.Join(names, "; "), "make bench ONLY='worst cases'")
	}
	return a.do(ctx, "bench", append(tasks, report)...)
}

// benchmarks is the folder of reports.
func (a *App) benchmarks() string { return filepath.Join(a.WS.Root, "docs", "benchmarks") }

func (a *App) writeBenchReport(runs []bench.Run, results []byte, s *progress.Step) error {
	samples, cpu, err := bench.Parse(results)
	if err != nil {
		return err
	}
	v, err := release.ReadVersion(a.WS)
	if err != nil {
		return err
	}
	report := bench.Report{
		Samples: samples, Runs: runs,
		Version: v.String(), Go: runtime.Version(), Machine: fmt.Sprintf("%s, %d cores", cpu, runtime.NumCPU()),
		Plot: benchReport + ".svg", Raw: benchReport + ".txt",
	}
	var text, plot bytes.Buffer
	if err := report.Write(&text); err != nil {
		return err
	}
	if err := report.WritePlot(&plot); err != nil {
		return err
	}
	dir := a.benchmarks()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, content := range map[string][]byte{benchReport + ".md": text.Bytes(), report.Plot: plot.Bytes(), report.Raw: results} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
		s.Sayf("wrote %s", path)
	}
	return nil
}
