// SPDX-License-Identifier: Apache-2.0

// Package integration runs our integration tests: which of them when, with which programs, and in what environment.
package integration

import (
	"context"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
)

// suites are those of every change, the longest first.
var suites = []string{"./scheduling", "./rescheduling", "./publishing", "./stress", "./driverguide", "./apifields", "./clustertest"}

// stockTests are the tests of these suites that start stock programs.
const stockTests = "^TestStock"

// AllPolicies has tests to which the policy of reservation makes no difference run with each of them.
const AllPolicies = "ALL_POLICIES=1"

// sideBySide is how many suites, and parallel how many tests of each, run at the same time: more than the machine has
// processors, because they wait more than they compute.
var sideBySide, parallel = strconv.Itoa(runtime.NumCPU() + 1), strconv.Itoa(2 * runtime.NumCPU())

// Env is what the tests find their programs by.
func Env(ws workspace.Workspace) []string {
	return []string{ws.Path(), "COMPONENTS=" + ws.Components(), "STOCK_COMPONENTS=" + ws.StockComponents(), "DRIVER_GUIDE=" + Guide(ws)}
}

// Test runs tests of test-integration. go test remembers what has passed, and of files looks at those of the module alone:
// $PROGRAMS changes with the programs that tests start.
func Test(ctx context.Context, ws workspace.Workspace, s *run.Step, out io.Writer, env []string, args ...string) error {
	programs, err := programsHash(ws)
	if err != nil {
		return err
	}
	args = append([]string{"-p", sideBySide, "-parallel", parallel}, args...)
	return toolchain.Test(ctx, ws.Integration(), slices.Concat(Env(ws), []string{"PROGRAMS=" + programs}, env), s.Log, out, args...)
}

// Tests runs the suites of every change.
func Tests(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	return Test(ctx, ws, s, s.Out, nil, slices.Concat([]string{"-timeout", "20m", "-skip", stockTests}, suites)...)
}

// LongTests are what those leave out, and no other step has.
func LongTests(ws workspace.Workspace) []run.Task {
	return []run.Task{
		ws.Task("both policies", func(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
			return Test(ctx, ws, s, s.Out, []string{AllPolicies}, "-timeout", "1h", "./scheduling", "./rescheduling", "./publishing")
		}),
		ws.Task("stock API server", func(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
			return Test(ctx, ws, s, s.Out, nil, "-run", stockTests, "./apifields")
		}),
		ws.Task("workloads of scheduler_perf", func(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
			return Test(ctx, ws, s, s.Out, nil, "-timeout", "1h", "./perf")
		}),
		ws.Task("the driver of the guide, with the race detector", func(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
			return Test(ctx, ws, s, s.Out, []string{"DRIVER_GUIDE=" + GuideWithRace(ws)}, "./driverguide")
		}),
		ws.Task("all combinations of programs", skew.write), ws.Task("shapes of drivers", shapes.write),
	}
}

// GateOff runs the scheduler with the gate on beside API servers with it off and on: of all combinations, those that need
// no other programs than a cluster.
func GateOff(ws workspace.Workspace) run.Task {
	return run.Task{Name: "the scheduler beside API servers with the gate off and on", Independent: true, Do: func(ctx context.Context, s *run.Step) error {
		return Test(ctx, ws, s, s.Out, nil, "-count=1", "-run", "^TestMatrix$/^api-o/^scheduler-on$", "./skew")
	}}
}

// Stress runs the randomised test of capacity reservation. The race detector needs cgo: all of Kubernetes is compiled once
// more for it.
func Stress(ctx context.Context, ws workspace.Workspace, s *run.Step, pods, seed string) error {
	return Test(ctx, ws, s, s.Out, []string{"CGO_ENABLED=1", AllPolicies}, "-race", "-count=1", "-v", "-timeout", "6h",
		"-run", "^TestStress$", "./stress", "-stress.pods="+pods, "-stress.seed="+seed)
}

// Guide is the folder in which the guide for authors of drivers is followed, and guideProgram what it builds.
func Guide(ws workspace.Workspace) string { return filepath.Join(ws.Work, "guide") }

// GuideWithRace is the folder of the same with the race detector.
func GuideWithRace(ws workspace.Workspace) string { return Guide(ws) + "-race" }

const guideProgram = "my-driver"
