// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"capacityv2.internal/scripts/check/failswithout"
	"capacityv2.internal/scripts/check/integration"
	"capacityv2.internal/scripts/check/overrides"
	"capacityv2.internal/scripts/check/upstreamsuites"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch"
	"capacityv2.internal/scripts/patch/series"
)

// stressPods is for each policy, and fuzzTime for each fuzz test.
const (
	stressPods = "1000"
	fuzzTime   = "3m"
)

// longTests are what takes too long for every change, after [tests]: what has to be compiled in another way for it, and
// what says the same of more combinations. It needs the programs.
func longTests(ws workspace.Workspace) (programs, checks []run.Task, err error) {
	selected, err := upstreamsuites.All()
	if err != nil {
		return nil, nil, err
	}
	without, err := failswithout.Tasks(ws.Integration(), integration.Env(ws))
	if err != nil {
		return nil, nil, err
	}
	checks = slices.Concat([]run.Task{
		ws.Each("unit tests that fill API types at random", "", func(ctx context.Context, p workspace.Project, s *run.Step) error {
			return testTouched(ctx, p, toolchain.Filling, s)
		}),
		ws.Task("round trips of all API types", func(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
			_, err := toolchain.UnitTest(ctx, ws.Tree(), toolchain.Both, s.Log, s.Out, []string{"-timeout", "20m"}, "./pkg/api/testing")
			return err
		}),
		ws.Task("unit tests of the scheduler's plugin with the race detector", testPluginRace),
		ws.Task("tests of the alerts", testAlerts),
		ws.Task("the example does not build without the trees", func(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
			return overrides.ExampleFails(ctx, example(ws), s)
		}),
	}, integration.LongTests(ws), []run.Task{
		ws.Task("pods under faults, with the race detector", stress),
		ws.Task("fuzz tests of the series", fuzz), ws.Task("quick benchmarks, once", smoke),
		ws.Task(fmt.Sprintf("%d of upstream's suites, gate off and on", len(selected)), func(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
			return testUpstream(ctx, ws, selected, s)
		}),
	}, without)
	programs = integration.LongPrograms(ws)
	for _, tasks := range [][]run.Task{programs, checks} {
		for i := range tasks {
			tasks[i].Independent = true
		}
	}
	return programs, checks, nil
}

// longOnly runs those steps of the long run whose name matches, after what they need.
func longOnly(ctx context.Context, ws workspace.Workspace, only *regexp.Regexp) error {
	programs, checks, err := longTests(ws)
	if err != nil {
		return err
	}
	if checks, err = selectSteps(checks, only); err != nil {
		return err
	}
	trees, err := treesAsTheyAre(ctx, ws)
	if err != nil {
		return err
	}
	return ws.Run(ctx, "test", slices.Concat(trees, []run.Task{patch.Overrides(ws)}, integration.Programs(ws), programs, checks)...)
}

// selectSteps returns the steps whose name matches. None is refused.
func selectSteps(all []run.Task, only *regexp.Regexp) ([]run.Task, error) {
	var some []run.Task
	var names []string
	for _, task := range all {
		names = append(names, task.Name)
		if only.MatchString(task.Name) {
			some = append(some, task)
		}
	}
	if len(some) == 0 {
		return nil, run.Refuse(fmt.Sprintf("no step of the long run matches %q", only), "one of:\n    "+strings.Join(names, "\n    "),
			"make test LONG=1 ONLY='without the change'")
	}
	return some, nil
}

// testPluginRace needs cgo, so that all that the plugin imports is compiled once
// more for it. Upstream's test that only waits is left out, and those that count
// allocations, which the race detector adds to.
func testPluginRace(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	return toolchain.Test(ctx, ws.Tree(), []string{"CGO_ENABLED=1"}, s.Log, s.Out, "-race", "-timeout", "15m",
		"-skip", "^TestBindPodVolumes$|Allocat", plugin+"/...")
}

// testAlerts runs the tests of the rules for Prometheus: each alert has to fire in one. All of promtool is compiled for it.
func testAlerts(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	if err := toolchain.BuildTools(ctx, ws, s, toolchain.Promtool); err != nil {
		return err
	}
	promtool := run.Cmd{Dir: filepath.Join(ws.Root, "docs", "monitoring"), Log: s.Log, Name: filepath.Join(ws.Bin(), "promtool"), Args: []string{"test", "rules", "rules_test.yaml"}}
	if err := promtool.Run(ctx); err != nil {
		return err
	}
	promtool.Args = []string{"check", "rules", "rules.yaml"}
	return promtool.Run(ctx)
}

// stress says how to have the same faults again.
func stress(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	seed := seed("STRESS_SEED")
	s.Sayf("the same faults again: STRESS_SEED=%s make test LONG=1", seed)
	return integration.Stress(ctx, ws, s, stressPods, seed)
}

// smoke runs benchmarks once, to see that they still run.
func smoke(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	return toolchain.Test(ctx, ws.Tree(), nil, s.Log, s.Out, "-run", "^$", "-benchtime", "1x", "-timeout", "30m",
		"-bench", "^Benchmark(Capacity(Lookup|Update)|PackVolumes|Begin|Explain)$|^BenchmarkFindPodVolumesCapacity$/^nodes=100$", plugin+"/...")
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
