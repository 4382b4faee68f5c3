// SPDX-License-Identifier: Apache-2.0

package failswithout

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
)

// Runner runs the integration tests with the gate off and on the stock server, and compares what each does with
// fails-without.yaml.
type Runner struct {
	list Expectations
	// dir is the folder of the tests, env what they find their programs by.
	dir string
	env []string

	suites  []Suite
	differ  []string
	results []toolchain.TestResult
}

// NewRunner reads the list of the suites.
func NewRunner(dir string, env []string) (*Runner, error) {
	list, err := ReadList(dir)
	if err != nil {
		return nil, err
	}
	return &Runner{list: list, dir: dir, env: env,
		suites: slices.DeleteFunc(slices.Clone(list.Suites), func(s Suite) bool { return len(s.targets()) == 0 })}, nil
}

// Tasks run the suites, and compare what they do with the list.
func (w *Runner) Tasks() []run.Task {
	tasks := []run.Task{{Name: "compile the tests", Do: func(ctx context.Context, s *run.Step) error {
		var packages []string
		for _, suite := range w.suites {
			packages = append(packages, "./"+suite.Folder)
		}
		return toolchain.CompileTests(ctx, w.dir, s.Log, packages...)
	}}}
	for _, suite := range w.suites {
		tasks = append(tasks, run.Task{Name: suite.Folder + ", " + strings.Join(suite.targets(), " and "), Do: func(ctx context.Context, s *run.Step) error {
			return w.suite(ctx, suite, s)
		}})
	}
	return append(tasks, run.Task{Name: "compare with the list", Do: w.judge})
}

// suite runs a suite on its targets, side by side.
func (w *Runner) suite(ctx context.Context, suite Suite, s *run.Step) error {
	targets := suite.targets()
	results := make([]toolchain.TestResult, len(targets))
	group, ctx := errgroup.WithContext(ctx)
	for i, target := range targets {
		group.Go(func() (err error) {
			results[i], err = w.run(ctx, suite.Folder, target, s)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	w.results = append(w.results, results...)
	for i, target := range targets {
		s.Sayf("%s: %d tests, %d of them fail", target, len(results[i].Tests), len(results[i].Failures()))
		for _, d := range w.list.Check(suite, target, results[i]) {
			s.Sayf("%s: %s", target, d)
			w.differ = append(w.differ, fmt.Sprintf("%s, %s: %s (log: %s)", suite.Folder, target, d, s.LogPath))
		}
	}
	return nil
}

// waiting is how many tests of a suite run at the same time without the change: most wait in vain until their time is
// over.
var waiting = strconv.Itoa(3 * runtime.NumCPU())

// run runs the tests of a folder on a target, with a log of its own beside that of the step.
func (w *Runner) run(ctx context.Context, folder, target string, s *run.Step) (result toolchain.TestResult, err error) {
	err = s.WithLog(target, target, func(log io.Writer) (err error) {
		env := append(slices.Clone(w.env), "CAPACITYV2_TARGET="+target)
		result, err = toolchain.TestOne(ctx, w.dir, env, log, "-count=1", "-parallel", waiting, "-timeout", "90m", "./"+folder)
		if err == nil && result.BuildFailed {
			err = fmt.Errorf("./%s does not compile", folder)
		}
		return err
	})
	return result, err
}

// judge refuses differences.
func (w *Runner) judge(context.Context, *run.Step) error {
	for _, variant := range w.list.Unused(w.results) {
		w.differ = append(w.differ, "no test has a subtest for the variant "+variant)
	}
	if len(w.differ) > 0 {
		return run.Refuse("tests do something else without the change:\n    "+strings.Join(w.differ, "\n    "),
			"what test-integration/fails-without.yaml says", "fix the test, or the list where it is right that the test passes")
	}
	return nil
}
