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

// runner runs the integration tests with the gate off and on the stock server, and compares what each does with
// fails-without.yaml.
type runner struct {
	list Expectations
	// dir is the folder of the tests, env what they find their programs by.
	dir string
	env []string

	results []toolchain.TestResult
}

// Tasks run the suites, each by itself, and then look at all results.
func Tasks(dir string, env []string) ([]run.Task, error) {
	list, err := ReadList(dir)
	if err != nil {
		return nil, err
	}
	w := &runner{list: list, dir: dir, env: env}
	var tasks []run.Task
	expected := 0
	for _, suite := range list.Suites {
		if targets := suite.targets(); len(targets) > 0 {
			expected += len(targets)
			name := suite.Folder + " without the change: " + strings.Join(targets, " and ")
			tasks = append(tasks, run.Task{Name: name, Do: func(ctx context.Context, s *run.Step) error { return w.suite(ctx, suite, targets, s) }})
		}
	}
	return append(tasks, run.Task{Name: "variants of the tests without the change", Do: func(_ context.Context, s *run.Step) error {
		if len(w.results) < expected {
			s.Sayf("not compared: not all suites have run")
			return nil
		}
		if unused := list.Unused(w.results); len(unused) > 0 {
			return run.Refuse("no test has a subtest for the variant "+strings.Join(unused, ", "), "what "+listFile+" says", "correct its variants")
		}
		return nil
	}}), nil
}

// suite runs a suite on its targets, side by side, and refuses differences.
func (w *runner) suite(ctx context.Context, suite Suite, targets []string, s *run.Step) error {
	if err := toolchain.CompileTests(ctx, w.dir, s.Log, "./"+suite.Folder); err != nil {
		return err
	}
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
	var differ []string
	for i, target := range targets {
		s.Sayf("%s: %d tests, %d of them fail", target, len(results[i].Tests), len(results[i].Failures()))
		for _, d := range w.list.Check(suite, target, results[i]) {
			differ = append(differ, target+": "+d)
		}
	}
	if len(differ) > 0 {
		return run.Refuse("tests do something else without the change:\n    "+strings.Join(differ, "\n    "),
			"what test-integration/fails-without.yaml says", "fix the test, or the list where it is right that the test passes")
	}
	return nil
}

// waiting is how many tests of a suite run at the same time without the change: most wait in vain until their time is
// over.
var waiting = strconv.Itoa(3 * runtime.NumCPU())

// run runs the tests of a folder on a target, with a log of its own beside that of the step.
func (w *runner) run(ctx context.Context, folder, target string, s *run.Step) (result toolchain.TestResult, err error) {
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
