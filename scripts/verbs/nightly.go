package verbs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/e2e"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/toolchain"
)

func nightlyCommand(a *App) *cobra.Command {
	var o NightlyOptions
	c := verb("nightly", "Run what takes too long for every change", `
These are its parts: `+strings.Join(a.nightlyNames(), ", ")+`. The part e2e runs all specs on all
targets, smoke the quick benchmarks once. A part that fails does not stop the next ones. Tables of
results are printed, and stay in _work/results.`,
		"  capacityv2 nightly --only 'prove|fuzz' --fuzz-time 1m\n  capacityv2 nightly --only upstream-suites --suite scheduler/queueing", func(ctx context.Context) error { return a.Nightly(ctx, o) })
	patternFlag(c, &o.Only, "only", "only the parts that match")
	c.Flags().DurationVar(&o.FuzzTime, "fuzz-time", 10*time.Minute, "how long each fuzz test runs")
	patternFlag(c, &o.Suite, "suite", "upstream-suites, fails-without: only suites whose folder matches")
	c.Flags().IntVar(&o.Pods, "pods", 2000, "number of pods for each policy in the stress test; docs/benchmarks/stress.md is of 10000")
	c.Flags().Int64Var(&o.Seed, "seed", 0, "stress, faults: seed of the faults, as an earlier run has printed it; 0 takes one from the clock")
	return c
}

// NightlyOptions are those of Nightly.
type NightlyOptions struct {
	// Only is for the names of the parts to run; nil matches all.
	Only *regexp.Regexp
	// FuzzTime is how long each fuzz test runs.
	FuzzTime time.Duration
	// Suite is for the folders of upstream's suites, or of ours in fails-without; nil matches all.
	Suite *regexp.Regexp
	// Pods is their number for each policy in the stress test, Seed what its faults and those of the
	// part faults come from.
	Pods int
	Seed int64
}

// smokeBenchmarks are the benchmarks that are quick if they run once.
var smokeBenchmarks = []string{
	"BenchmarkCapacityLookup", "BenchmarkCapacityUpdate", "BenchmarkFindPodVolumesCapacity/nodes=100", "BenchmarkPackVolumes",
}

// Nightly runs what takes too long for every change. A part that fails does not
// stop the next ones.
func (a *App) Nightly(ctx context.Context, o NightlyOptions) error {
	only := cmp.Or(o.Only, everything)
	var errs []error
	var summary strings.Builder
	for _, part := range a.nightlyParts(ctx, o) {
		if !only.MatchString(part.name) {
			continue
		}
		if ctx.Err() != nil { // what is left out has not passed
			errs = append(errs, ctx.Err())
			break
		}
		begin, verdict := time.Now(), "passed"
		if err := part.f(); err != nil {
			verdict = "FAILED"
			errs = append(errs, err)
		}
		fmt.Fprintf(&summary, "  %-16s %s in %s\n", part.name, verdict, time.Since(begin).Round(time.Second))
	}
	if summary.Len() == 0 && len(errs) == 0 {
		return run.Refuse(fmt.Sprintf("no part matches %q", only), "one of: "+strings.Join(a.nightlyNames(), ", "), "make nightly ONLY=prove")
	}
	fmt.Fprintf(a.Out, "nightly:\n%s", summary.String())
	return errors.Join(errs...)
}

type nightlyPart struct {
	name string
	f    func() error
}

// nightlyParts are the parts of [App.Nightly]. The workflow nightly has a job for each.
func (a *App) nightlyParts(ctx context.Context, o NightlyOptions) []nightlyPart {
	return []nightlyPart{
		{"prove", func() error { return a.Verify(ctx, everything) }},
		{"upstream-suites", func() error { return a.upstreamSuites(ctx, o.Suite) }},
		{"fails-without", func() error { return a.failsWithout(ctx, o.Suite) }},
		{"skew", func() error { return a.skew(ctx) }},
		{"stress", func() error { return a.stress(ctx, o.Pods, o.Seed) }},
		{"faults", func() error { return a.faults(ctx, o.Seed) }},
		{"e2e", func() error { return a.e2eAll(ctx) }},
		{"smoke", func() error { return a.smoke(ctx) }},
		{"fuzz", func() error { return a.fuzz(ctx, o.FuzzTime) }},
	}
}

func (a *App) nightlyNames() []string {
	var names []string
	for _, part := range a.nightlyParts(context.Background(), NightlyOptions{}) {
		names = append(names, part.name)
	}
	return names
}

// e2eAll runs all specs on each target, on a cluster of its own.
func (a *App) e2eAll(ctx context.Context) error {
	var errs []error
	for _, target := range e2e.Targets {
		if ctx.Err() != nil {
			errs = append(errs, ctx.Err())
			break
		}
		errs = append(errs, a.E2E(ctx, E2EOptions{Options: e2e.Options{Target: target, All: true, Procs: SpecProcs}}))
	}
	return errors.Join(errs...)
}

// smoke runs benchmarks once, to see that they still run.
func (a *App) smoke(ctx context.Context) error {
	return a.do(ctx, "smoke", a.apply(run.Task{Name: "benchmarks of the scheduler's plugin, once", Do: func(ctx context.Context, s *run.Step) error {
		var patterns []string
		for _, b := range smokeBenchmarks {
			patterns = append(patterns, "^"+strings.ReplaceAll(b, "/", "$/^")+"$")
		}
		var output bytes.Buffer
		if err := toolchain.Test(ctx, a.WS.Tree(), nil, io.MultiWriter(s.Log, &output), s.Out, "-run", "^$", "-bench", strings.Join(patterns, "|"),
			"-benchtime", "1x", "-timeout", "30m", "./pkg/scheduler/framework/plugins/volumebinding"); err != nil {
			return err
		}
		return allRan(smokeBenchmarks, output.String())
	}})...)
}

// allRan returns an error if the output of go test has no result of one of the
// benchmarks: a pattern that matches nothing is none for the go command.
func allRan(benchmarks []string, output string) error {
	var missing []string
	for _, b := range benchmarks {
		if !strings.Contains(output, "\n"+b+"-") && !strings.Contains(output, "\n"+b+"/") {
			missing = append(missing, b)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("these benchmarks did not run: %s", strings.Join(missing, ", "))
	}
	return nil
}

// fuzz runs upstream's round trips, which fill the types of all API groups at random,
// and each fuzz test of the series. The compiler instruments for the latter, so all that
// the package imports is compiled once more.
func (a *App) fuzz(ctx context.Context, each time.Duration) error {
	return a.do(ctx, "fuzz", a.apply(run.Task{Name: "round trips of all API types", Do: func(ctx context.Context, s *run.Step) error {
		return toolchain.UnitTest(ctx, a.WS.Tree(), s.Log, s.Out, []string{"-timeout", "20m"}, "./pkg/api/testing")
	}}, run.Task{Name: "fuzz tests of the series", Do: func(ctx context.Context, s *run.Step) error {
		patches, err := series.Read(a.WS.Series())
		if err != nil {
			return err
		}
		tests, err := fuzzTests(a.WS.Tree(), series.Paths(patches))
		if err != nil {
			return err
		}
		for _, t := range tests {
			s.Sayf("%s:%s for %s", t.pkg, t.name, each)
			if err := toolchain.Test(ctx, a.WS.Tree(), nil, s.Log, s.Out, "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", each.String(), "./"+t.pkg); err != nil {
				return err
			}
		}
		return nil
	}})...)
}

type fuzzTest struct{ pkg, name string }

var fuzzFunc = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// fuzzTests finds the fuzz tests in the files at paths.
func fuzzTests(tree string, paths []string) ([]fuzzTest, error) {
	var tests []fuzzTest
	for _, p := range paths {
		if !strings.HasSuffix(p, "_test.go") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(tree, filepath.FromSlash(p)))
		if errors.Is(err, os.ErrNotExist) {
			continue // a later patch has removed it
		}
		if err != nil {
			return nil, err
		}
		for _, m := range fuzzFunc.FindAllSubmatch(content, -1) {
			tests = append(tests, fuzzTest{path.Dir(p), string(m[1])})
		}
	}
	if len(tests) == 0 {
		return nil, errors.New("the series has no fuzz test")
	}
	return tests, nil
}
