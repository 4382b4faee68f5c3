package verbs

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/overrides"
	"capacityv2.internal/scripts/release"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/suites"
	"capacityv2.internal/scripts/toolchain"
	"capacityv2.internal/scripts/workspace"
)

func testCommand(a *App) *cobra.Command {
	return verb("test", "Run lint, the unit tests of every touched package, and the integration tests", `
The integration tests are ours, against the patched and the stock API server, and those of
upstream's that touch the plugin, with the gate off and on. They start an etcd and servers of
their own, on loopback.`, "", a.Test)
}

// Test runs lint, the unit tests of every touched package, and the integration
// tests, ours and upstream's.
func (a *App) Test(ctx context.Context) error {
	return a.do(ctx, "test", slices.Concat(a.apply(), a.lint(), []run.Task{
		{Name: "tests of the tooling", Do: a.testScripts},
		a.each("unit tests of the touched packages", "", a.testTouched),
		{Name: "unit tests of the scheduler's plugin with the race detector", Do: a.testPluginRace},
		{Name: "upstream's check of the feature gate lists", Do: a.verifyFeatureGates},
		{Name: "another module builds against the overrides", Do: a.proveOverrides},
		{Name: "tests of the reference driver, and csi-sanity", Do: a.testDriver},
		a.buildEtcd(),
		{Name: "build the stock kube-apiserver and kube-scheduler", Do: func(ctx context.Context, s *run.Step) error {
			return a.buildStock(ctx, s, "kube-apiserver", "kube-scheduler")
		}},
		{Name: "build the control plane", Do: a.buildControlPlane},
		a.buildProvisioner(),
		{Name: "build kubectl", Do: a.buildKubectl},
		{Name: "integration tests, ours and upstream's, gate off and on", Do: a.testIntegration},
	})...)
}

// testScripts does not take results from the cache: it does not notice changes of
// files outside of the module, such as the Makefile.
func (a *App) testScripts(ctx context.Context, s *run.Step) error {
	return toolchain.Test(ctx, filepath.Join(a.WS.Root, "scripts"), []string{"GOWORK=off"}, s.Log, s.Out, "-count=1", "./...")
}

func (a *App) testTouched(ctx context.Context, p workspace.Project, s *run.Step) error {
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

// testPluginRace needs cgo, so that all that the plugin imports is compiled once
// more for it. Upstream's test that only waits is left out, and those that count
// allocations, which the race detector adds to.
func (a *App) testPluginRace(ctx context.Context, s *run.Step) error {
	return toolchain.Test(ctx, a.WS.Tree(), []string{"CGO_ENABLED=1"}, s.Log, s.Out, "-race", "-timeout", "15m",
		"-skip", "^TestBindPodVolumes$|Allocat", "./pkg/scheduler/framework/plugins/volumebinding/...")
}

// verifyFeatureGates runs upstream's script, which compares the gates in the
// code with the versioned list.
func (a *App) verifyFeatureGates(ctx context.Context, s *run.Step) error {
	env, err := toolchain.UpstreamEnv(ctx)
	if err != nil {
		return err
	}
	return run.Cmd{Dir: a.WS.Tree(), Env: append(env, a.binPath()), Log: s.Log, Name: "bash", Args: []string{"hack/verify-featuregates.sh"}}.Run(ctx)
}

// proveOverrides builds the example outside of the tree, with the patched
// staging modules and, which has to fail, without.
func (a *App) proveOverrides(ctx context.Context, s *run.Step) error {
	if err := a.writeOverrides(ctx, s); err != nil {
		return err
	}
	if err := overrides.Prove(ctx, filepath.Join(a.WS.Root, "staging-overrides", "example"), a.WS.Overrides(), s); err != nil {
		return err
	}
	s.Sayf("with what docs/driver-authors.md says")
	return overrides.FollowGuide(ctx, filepath.Join(a.WS.Root, "docs", "driver-authors.md"), a.WS.Root, a.guide(), s)
}

// guide is the folder in which the guide for authors of drivers is followed.
func (a *App) guide() string { return filepath.Join(a.WS.Work, "guide") }

// testDriver runs the tests of test-e2e that need no cluster, and names those that are
// skipped: csi-sanity is, without root.
func (a *App) testDriver(ctx context.Context, s *run.Step) error {
	return toolchain.Test(ctx, a.endToEndTests(), nil, s.Log, s.Out, "-v", "-timeout", "10m", "./driver/...", "./mock/...", "./measure", "./chain")
}

func (a *App) buildEtcd() run.Task {
	return run.Task{Name: "build etcd", Do: func(ctx context.Context, s *run.Step) error {
		return toolchain.BuildTools(ctx, a.WS, s, toolchain.Etcd)
	}}
}

func (a *App) buildKubectl(ctx context.Context, s *run.Step) error {
	return release.BuildComponents(ctx, a.WS, workspace.Kubernetes, s.Log, a.WS.Components(), "kubectl")
}

func (a *App) buildStockAPIServer(ctx context.Context, s *run.Step) error {
	return a.buildStock(ctx, s, "kube-apiserver")
}

// integrationEnv is what our integration tests find their programs by.
func (a *App) integrationEnv() []string {
	return []string{
		a.binPath(), a.histories(),
		"COMPONENTS=" + a.WS.Components(), "STOCK_COMPONENTS=" + a.WS.StockComponents(),
		"STOCK_KUBE_APISERVER=" + filepath.Join(a.WS.StockComponents(), "kube-apiserver"),
		"CSI_PROVISIONER=" + filepath.Join(a.WS.Components(), provisionerProgram),
		"DRIVER_GUIDE=" + a.guide(),
	}
}

// integration runs tests of test-integration.
func (a *App) integration(ctx context.Context, s *run.Step, env []string, args ...string) error {
	return toolchain.Test(ctx, a.integrationTests(), append(a.integrationEnv(), env...), s.Log, s.Out, args...)
}

// histories is where tests leave what drivers were asked for, if that is not legal.
func (a *App) histories() string { return "HISTORIES=" + a.WS.Logs() }

// historyTests are those of the room that checks it, which is a module of its own.
const historyTests = "capacityv2.internal/test-integration/history"

// sideBySide is how many integration suites, and how many tests of each, run at the same time:
// more than the machine has processors, because they wait more than they compute.
var sideBySide = strconv.Itoa(runtime.NumCPU() + 1)

// testIntegration runs ours, the longest one first, and beside them those of upstream's suites
// that touch the plugin.
func (a *App) testIntegration(ctx context.Context, s *run.Step) error {
	var upstream error
	var group sync.WaitGroup
	group.Go(func() {
		var results suites.UpstreamResults
		if results, upstream = a.suiteRunner(1).Run(ctx, suites.Quick, s); upstream == nil {
			upstream = results.Check()
		}
	})
	ours := a.integration(ctx, s, nil, "-p", sideBySide, "-parallel", sideBySide, "-timeout", "40m", "./scheduling", "./...", historyTests)
	group.Wait()
	return errors.Join(ours, upstream)
}
