package check

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/build"
	"capacityv2.internal/scripts/check/overrides"
	"capacityv2.internal/scripts/check/suites"
	"capacityv2.internal/scripts/ground/cli"
	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch"
	"capacityv2.internal/scripts/patch/series"
)

func testVerb() *cobra.Command {
	var long bool
	c := cli.Verb("test", "Run the unit tests of every touched package, and the integration tests", `
The integration tests are ours, against the patched and the stock API server, and those of
upstream's that touch the plugin, with the gate off and on. They start an etcd and servers of
their own, on loopback.

With --long, it also runs all of upstream's integration suites that storage has to do with, ours with the gate off and on
the stock server, where they have to fail, all combinations of programs with and without the series, thousands of pods
under faults, the fuzz tests, and the quick benchmarks once. One that fails does not keep the next ones from running.
STRESS_SEED in the environment has the faults of an earlier run.`, "", func(ctx context.Context, ws workspace.Workspace) error {
		tasks := tests(ws)
		if long {
			more, err := longTests(ws)
			if err != nil {
				return err
			}
			tasks = append(tasks, more...)
		}
		return ws.Run(ctx, "test", tasks...)
	})
	longFlag(c, &long, "also what takes too long for every change")
	return c
}

// tests are those of every change.
func tests(ws workspace.Workspace) []run.Task {
	return slices.Concat([]run.Task{patch.Lint(ws)}, patch.Trees(ws, ""), []run.Task{
		ws.Each("unit tests of the touched packages", "", testTouched),
		ws.Task("unit tests of the scheduler's plugin with the race detector", testPluginRace),
		{Name: "upstream's check of the feature gate lists", Do: func(ctx context.Context, s *run.Step) error {
			env, err := toolchain.UpstreamEnv(ctx)
			if err != nil {
				return err
			}
			return run.Cmd{Dir: ws.Tree(), Env: append(env, ws.Path()), Log: s.Log, Name: "bash", Args: []string{"hack/verify-featuregates.sh"}}.Run(ctx)
		}},
		patch.Overrides(ws),
		{Name: "another module builds against the trees", Do: func(ctx context.Context, s *run.Step) error {
			if err := overrides.Prove(ctx, filepath.Join(ws.Root, "staging-overrides", "example"), ws.Overrides(), s); err != nil {
				return err
			}
			s.Sayf("with what docs/tutorials/first-driver.md says")
			return overrides.FollowGuide(ctx, filepath.Join(ws.Root, "docs", "tutorials", "first-driver.md"), ws.Root, guide(ws), s)
		}},
		// Those of test-e2e that need no cluster. It names those that are skipped: csi-sanity is, without root.
		{Name: "tests of the reference driver, and csi-sanity", Do: func(ctx context.Context, s *run.Step) error {
			return toolchain.Test(ctx, ws.EndToEnd(), nil, s.Log, s.Out, "-v", "-timeout", "10m", "./driver/...", "./mock/...", "./measure")
		}},
		build.Tools(ws, "build etcd", toolchain.Etcd),
		build.Stock(ws, "kube-apiserver", "kube-scheduler"), build.StockProvisioner(ws),
		build.Components(ws, append([]string{"kubectl"}, build.ControlPlane...)...),
		build.Provisioner(ws),
		{Name: "upstream's integration tests, gate off and on", Independent: true, Do: func(ctx context.Context, s *run.Step) error {
			return testUpstream(ctx, ws, suites.Quick, s)
		}},
		// The longest suites first.
		{Name: "our integration tests", Independent: true, Do: func(ctx context.Context, s *run.Step) error {
			return integration(ctx, ws, s, nil, "-p", sideBySide, "-parallel", sideBySide, "-timeout", "40m", "./zoo", "./scheduling", "./...", historyTests)
		}},
	})
}

func testTouched(ctx context.Context, p workspace.Project, s *run.Step) error {
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
	return toolchain.UnitTest(ctx, p.Tree(), s.Log, s.Out, append([]string{"-timeout", "20m"}, p.TestArgs...), pkgs...)
}

// plugin is the scheduler's plugin that the series changes.
const plugin = "./pkg/scheduler/framework/plugins/volumebinding"

// testPluginRace needs cgo, so that all that the plugin imports is compiled once
// more for it. Upstream's test that only waits is left out, and those that count
// allocations, which the race detector adds to.
func testPluginRace(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	return toolchain.Test(ctx, ws.Tree(), []string{"CGO_ENABLED=1"}, s.Log, s.Out, "-race", "-timeout", "15m",
		"-skip", "^TestBindPodVolumes$|Allocat", plugin+"/...")
}

// guide is the folder in which the guide for authors of drivers is followed, and guideProgram what it builds.
func guide(ws workspace.Workspace) string { return filepath.Join(ws.Work, "guide") }

const guideProgram = "my-driver"

// integrationEnv is what our integration tests find their programs by.
func integrationEnv(ws workspace.Workspace) []string {
	return []string{
		ws.Path(),
		"COMPONENTS=" + ws.Components(), "STOCK_COMPONENTS=" + ws.StockComponents(),
		"STOCK_KUBE_APISERVER=" + filepath.Join(ws.StockComponents(), "kube-apiserver"),
		"CSI_PROVISIONER=" + filepath.Join(ws.Components(), build.ProvisionerProgram),
		"DRIVER_GUIDE=" + guide(ws),
	}
}

// integration runs tests of test-integration. go test remembers what has passed, and of files looks at those of the module
// alone: $PROGRAMS changes with the programs that tests start.
func integration(ctx context.Context, ws workspace.Workspace, s *run.Step, env []string, args ...string) error {
	programs, err := programsHash(ws)
	if err != nil {
		return err
	}
	return toolchain.Test(ctx, ws.Integration(), slices.Concat(integrationEnv(ws), []string{"PROGRAMS=" + programs}, env), s.Log, s.Out, args...)
}

// programsHash is that of the programs that are built for the integration tests.
func programsHash(ws workspace.Workspace) (string, error) {
	names := []string{filepath.Join(filepath.Base(guide(ws)), guideProgram)}
	for _, folder := range []string{ws.Components(), ws.StockComponents()} {
		for _, program := range append([]string{build.ProvisionerProgram, "kubectl"}, build.ControlPlane...) {
			names = append(names, filepath.Join(filepath.Base(folder), program))
		}
	}
	return files.Hash(os.DirFS(ws.Work), names...)
}

// historyTests are those of the package that checks it, which is a module of its own.
const historyTests = "capacityv2.internal/test-integration/history"

// sideBySide is how many of our integration suites, and how many tests of each, run at the same time:
// more than the machine has processors, because they wait more than they compute.
var sideBySide = strconv.Itoa(runtime.NumCPU() + 1)

// testUpstream runs suites of upstream's.
func testUpstream(ctx context.Context, ws workspace.Workspace, selected []suites.Upstream, s *run.Step) error {
	results, err := suites.UpstreamRunner{Tree: ws.Tree(), Env: []string{ws.Path()}}.Run(ctx, selected, s)
	if err != nil {
		return err
	}
	return results.Check()
}
