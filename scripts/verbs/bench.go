package verbs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"capacityv2.internal/scripts/bench"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/release"
)

// benchReport is the name of the report's files in docs/benchmarks.
const benchReport = "scheduler"

// Bench runs the benchmarks and writes the report. The report is written when
// all of them have run, or not at all. With reportOnly, it is written again from
// the results of the last run.
func (a *App) Bench(ctx context.Context, reportOnly bool) error {
	runs := bench.Runs(a.WS.Tree(), a.WS.Root)
	if reportOnly {
		return a.do(ctx, "bench", progress.Task{Name: "report", Do: func(_ context.Context, s *progress.Step) error {
			results, err := os.ReadFile(filepath.Join(a.WS.Root, "docs", "benchmarks", benchReport+".txt"))
			if err != nil {
				return err
			}
			return a.writeBenchReport(runs, results, s)
		}})
	}
	tasks := a.apply(progress.Task{Name: "build etcd", Do: a.buildEtcd})
	var results bytes.Buffer
	for _, run := range runs {
		tasks = append(tasks, progress.Task{Name: run.Name, Do: func(ctx context.Context, s *progress.Step) error {
			measured, err := run.Measure(ctx, []string{a.binPath()}, s.Log)
			results.Write(measured)
			return err
		}})
	}
	return a.do(ctx, "bench", append(tasks, progress.Task{Name: "report", Do: func(_ context.Context, s *progress.Step) error {
		return a.writeBenchReport(runs, results.Bytes(), s)
	}})...)
}

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
	dir := filepath.Join(a.WS.Root, "docs", "benchmarks")
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
