// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/check/integration"
	"capacityv2.internal/scripts/check/overrides"
	"capacityv2.internal/scripts/check/upstreamsuites"
	"capacityv2.internal/scripts/ground/cli"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch"
	"capacityv2.internal/scripts/patch/series"
)

func testVerb() *cobra.Command {
	var only *regexp.Regexp
	var long bool
	c := cli.Verb("test", "Run the unit tests of every touched package, and the integration tests", `
The integration tests are ours, against the patched API server, and those of upstream's that touch the plugin, with the
gate off and on. They start an etcd and servers of their own, on loopback.

With --only, it runs the packages whose path matches, such as kubernetes/pkg/scheduler/framework/plugins/volumebinding or
test-integration/scheduling, and builds what these need. The trees are taken as they are, with what is not committed or
exported. After a colon, the tests of these packages to run can follow, as for go test -run.

With --long, it also runs all of upstream's integration suites that storage has to do with, ours for both policies, and with the
gate off and on the stock server, where they have to fail, all combinations of programs with and without the series,
all shapes of drivers, the race detector, thousands of pods under faults, the fuzz tests, and the quick benchmarks once.
One that fails does not keep the next ones from running. With --only, it runs those of these steps whose name matches, after
building what they start. STRESS_SEED in the environment has the faults of an earlier run.`,
		"  capacityv2 test --only scheduling:TestTwoClasses", func(ctx context.Context, ws workspace.Workspace) error {
			switch {
			case only != nil && long:
				return longOnly(ctx, ws, only)
			case only != nil:
				return testOnly(ctx, ws, only)
			case long:
				programs, checks, err := longTests(ws)
				if err != nil {
					return err
				}
				return ws.Run(ctx, "test", slices.Concat(tests(ws), programs, checks)...)
			}
			return ws.Run(ctx, "test", tests(ws)...)
		})
	cli.PatternFlag(c, &only, "only", "only packages, or tests after a colon, that match; with --long, only its steps that match")
	longFlag(c, &long, "also what takes too long for every change")
	return c
}

// tests are those of every change.
func tests(ws workspace.Workspace) []run.Task {
	return slices.Concat([]run.Task{patch.Lint(ws)}, patch.Trees(ws, ""), []run.Task{
		ws.Each("unit tests of the touched packages", "", func(ctx context.Context, p workspace.Project, s *run.Step) error {
			return testTouched(ctx, p, toolchain.Plain, s)
		}),
		{Name: "upstream's check of the feature gate lists", Do: func(ctx context.Context, s *run.Step) error {
			env, err := toolchain.UpstreamEnv(ctx)
			if err != nil {
				return err
			}
			return run.Cmd{Dir: ws.Tree(), Env: append(env, ws.Path()), Log: s.Log, Name: "bash", Args: []string{"hack/verify-featuregates.sh"}}.Run(ctx)
		}},
		patch.Overrides(ws),
		{Name: "another module builds against the trees", Do: func(ctx context.Context, s *run.Step) error {
			return overrides.BuildExample(ctx, example(ws), ws.Overrides(), s)
		}},
		// Those of test-e2e that need no cluster. It names those that are skipped: csi-sanity is, without root.
		{Name: "tests of the reference driver, and csi-sanity", Do: func(ctx context.Context, s *run.Step) error {
			return toolchain.Test(ctx, ws.EndToEnd(), nil, s.Log, s.Out, append([]string{"-v", "-timeout", "10m"}, withoutCluster...)...)
		}},
	}, integration.Programs(ws), []run.Task{
		{Name: "upstream's integration tests, gate off and on", Independent: true, Do: func(ctx context.Context, s *run.Step) error {
			return testUpstream(ctx, ws, upstreamsuites.Quick, s)
		}},
		{Name: "our integration tests", Independent: true, Do: func(ctx context.Context, s *run.Step) error {
			return integration.Tests(ctx, ws, s)
		}},
	})
}

// withoutCluster are the packages of test-e2e whose tests need no cluster.
var withoutCluster = []string{"./driver/...", "./mock/...", "./measure"}

// example is another module.
func example(ws workspace.Workspace) string {
	return filepath.Join(ws.Root, "staging-overrides", "example")
}

// testTouched tests what the patches touch, as far as it is of a kind.
func testTouched(ctx context.Context, p workspace.Project, kind toolchain.Kind, s *run.Step) error {
	patches, err := series.Read(p.Series())
	if err != nil {
		return err
	}
	pkgs := series.Packages(p.Tree(), series.Paths(patches))
	for _, d := range p.Dependents {
		if !slices.Contains(pkgs, d) {
			pkgs = append(pkgs, d)
		}
	}
	pkgs, _ = series.SplitSuites(pkgs)
	s.Sayf("%s: %d package patterns", p.Title, len(pkgs))
	left, err := toolchain.UnitTest(ctx, p.Tree(), kind, s.Log, s.Out, append([]string{"-timeout", "20m"}, p.TestArgs...), pkgs...)
	if len(left) > 0 && kind == toolchain.Plain {
		s.Sayf("left to LONG=1, because they are compiled in another way: %s", strings.Join(left, " "))
	}
	return err
}

// plugin is the scheduler's plugin that the series changes.
const plugin = "./pkg/scheduler/framework/plugins/volumebinding"

// testUpstream runs suites of upstream's.
func testUpstream(ctx context.Context, ws workspace.Workspace, selected []upstreamsuites.Suite, s *run.Step) error {
	results, err := upstreamsuites.Runner{Tree: ws.Tree(), Env: []string{ws.Path()}}.Run(ctx, selected, s)
	if err != nil {
		return err
	}
	return results.Check()
}
