package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"capacityv2.internal/scripts/build"
	"capacityv2.internal/scripts/check/suites"
	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch/series"
)

// stressPods is for each policy, and fuzzTime for each fuzz test.
const (
	stressPods = "2000"
	fuzzTime   = "10m"
)

// longTests are what takes too long for every change, after [tests].
func longTests(ws workspace.Workspace) ([]run.Task, error) {
	selected, err := suites.Upstreams()
	if err != nil {
		return nil, err
	}
	without, err := suites.NewWithout(ws.Integration(), integrationEnv(ws))
	if err != nil {
		return nil, err
	}
	tasks := append([]run.Task{
		build.Stock(ws, build.ControlPlane...),
		ws.Task("all combinations of programs", skew), ws.Task("drivers as they are", zoo), ws.Task("pods under faults, with the race detector", stress),
		ws.Task("round trips of all API types", func(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
			return toolchain.UnitTest(ctx, ws.Tree(), s.Log, s.Out, []string{"-timeout", "20m"}, "./pkg/api/testing")
		}),
		ws.Task("fuzz tests of the series", fuzz), ws.Task("quick benchmarks, once", smoke),
		ws.Task(fmt.Sprintf("%d of upstream's suites, gate off and on", len(selected)), func(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
			return testUpstream(ctx, ws, selected, s)
		})}, without.Tasks()...)
	for i := range tasks {
		tasks[i].Independent = true
	}
	return tasks, nil
}

// skewPage is the test that docs/reference/skew-results.md has all combinations.
const skewPage = "^TestPage$"

// skew runs all combinations of programs with and without the series, and writes the tables of docs/reference/skew-results.md.
func skew(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	asIs := func(report []byte) (string, error) { return string(report), nil }
	return writePage(ctx, ws, s, "docs/reference/skew-results.md", skewPage, "-skew.report", asIs, "./skew", "-timeout", "3h", "-skew.all")
}

// writePage runs a suite at length, writes the table of its report into a page, and runs the test of that page. reportFlag
// tells the suite where to put the report.
func writePage(ctx context.Context, ws workspace.Workspace, s *run.Step, page, pageTest, reportFlag string, table func(report []byte) (string, error), suite string, flags ...string) error {
	file := strings.TrimSuffix(s.LogPath, filepath.Ext(s.LogPath)) + ".report"
	if err := os.RemoveAll(file); err != nil {
		return err
	}
	args := append([]string{"-count=1", suite, "-skip", pageTest, "-v", "-parallel", sideBySide, reportFlag + "=" + file}, flags...)
	if err := integration(ctx, ws, s, nil, args...); err != nil {
		return err
	}
	report, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err := table(report)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := files.UpdateSection(filepath.Join(ws.Root, page), "make test LONG=1", text); err != nil {
		return err
	}
	return integration(ctx, ws, s, nil, "-count=1", suite, "-run", pageTest)
}

// stress runs the randomised test of capacity reservation. The race detector needs cgo: all of Kubernetes is compiled once
// more for it.
func stress(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	seed := seed("STRESS_SEED")
	s.Sayf("the same faults again: STRESS_SEED=%s make test LONG=1", seed)
	return integration(ctx, ws, s, []string{"CGO_ENABLED=1"}, "-race", "-count=1", "-v", "-timeout", "6h",
		"-run", "^TestStress$", "./stress", "-stress.pods="+stressPods, "-stress.seed="+seed)
}

// smoke runs benchmarks once, to see that they still run.
func smoke(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	return toolchain.Test(ctx, ws.Tree(), nil, s.Log, s.Out, "-run", "^$", "-benchtime", "1x", "-timeout", "30m",
		"-bench", "^Benchmark(Capacity(Lookup|Update)|PackVolumes)$|^BenchmarkFindPodVolumesCapacity$/^nodes=100$", plugin)
}

// fuzz runs each fuzz test of the series. The compiler instruments for them, so all that the package imports is
// compiled once more.
func fuzz(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	patches, err := series.Read(ws.Series())
	if err != nil {
		return err
	}
	tests, err := fuzzTests(ws.Tree(), series.Paths(patches))
	if err != nil {
		return err
	}
	for _, t := range tests {
		s.Sayf("%s:%s for %s", t.pkg, t.name, fuzzTime)
		if err := toolchain.Test(ctx, ws.Tree(), nil, s.Log, s.Out, "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", fuzzTime, "./"+t.pkg); err != nil {
			return err
		}
	}
	return nil
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
