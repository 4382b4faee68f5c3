// SPDX-License-Identifier: Apache-2.0

// Package e2e runs the specs of the end-to-end test program: which of them, on which target, with which images, and
// what their reports say.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"capacityv2.internal/scripts/check/failswithout"
	"capacityv2.internal/scripts/cluster/local"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
)

// Options say which specs run.
type Options struct {
	// Target is one of [Targets].
	Target string
	// Only is for the names of the specs to run, slow ones too; nil: all.
	Only *regexp.Regexp
	// All is whether all selected specs run, and not only the quick ones.
	All bool
	// Procs is how many specs run side by side.
	Procs int
}

// Run is one run of specs on a target.
type Run struct {
	Options

	// Program is the test program, and Ginkgo what runs its specs side by side, with Env.
	Program, Ginkgo string
	Env             []string
	// Suite is the folder of the program's source, with its lists.
	Suite string
	// Work is the folder for the JUnit files of all targets.
	Work    string
	Cluster local.Status
	// Without is what ours do without the change.
	Without failswithout.Expectations

	selection Selection
	// all are the names of all specs of the program.
	all     []string
	results []Result
	// wrong is what the run is refused for at the end.
	wrong []string
}

// Tasks are the steps of the run, with others in the middle: our specs need a driver
// that has published what is free, and leave it so. Nothing that fails stops the run.
func (r *Run) Tasks(others ...run.Task) []run.Task {
	tasks := []run.Task{
		{Name: "choose specs", Do: r.choose},
		{Name: "our specs, " + r.Target, Do: func(ctx context.Context, s *run.Step) error { return r.run(ctx, "ours", true, s) }},
	}
	for _, t := range others {
		tasks = append(tasks, run.Task{Name: t.Name, Do: func(ctx context.Context, s *run.Step) error {
			if err := t.Do(ctx, s); err != nil {
				s.Sayf("FAILED (log: %s)", s.LogPath)
				r.wrong = append(r.wrong, t.Name+": "+err.Error())
			}
			return ctx.Err()
		}})
	}
	return append(tasks,
		run.Task{Name: "upstream's specs, " + r.Target, Do: func(ctx context.Context, s *run.Step) error { return r.run(ctx, "upstream", false, s) }})
}

// reports is the folder of the JUnit files of a part of the run.
func (r *Run) reports(part string) string { return filepath.Join(r.Work, r.Target, part) }

func (r *Run) report(part string) string { return filepath.Join(r.reports(part), "junit_01.xml") }

// arguments are those of the test program, for the cluster and the reference driver.
func (r *Run) arguments(part string, further ...string) []string {
	return append([]string{
		"--kubeconfig=" + r.Cluster.Kubeconfig, "--kubectl-path=" + r.Cluster.Kubectl(), "--provider=local",
		"-storage.testdriver=" + filepath.Join(r.Suite, "reference.yaml"), "--report-dir=" + r.reports(part), "--ginkgo.no-color",
	}, further...)
}

func (r *Run) env() []string {
	return slices.Concat(r.Env, r.Cluster.Env(), []string{"CAPACITYV2_TARGET=" + r.Target})
}

// choose reads the lists, and asks the program for its specs.
func (r *Run) choose(ctx context.Context, s *run.Step) (err error) {
	if r.selection, err = ReadSelection(r.Suite); err != nil {
		return err
	}
	if err := os.RemoveAll(r.reports("")); err != nil {
		return err
	}
	if err := (run.Cmd{Name: r.Program, Args: r.arguments("dry-run", "--ginkgo.dry-run"), Env: r.env(), Log: s.Log}).Run(ctx); err != nil {
		return err
	}
	known, err := Read(r.report("dry-run"))
	if err != nil {
		return err
	}
	r.all = Names(known)
	if stale := r.selection.Stale(r.all); len(stale) > 0 {
		return run.Refuse("in test-e2e/suite:\n    "+strings.Join(stale, "\n    "), "entries for specs that there are", "remove the entry, or correct it")
	}
	chosen := len(r.chosen(true)) + len(r.chosen(false))
	if chosen == 0 {
		return run.Refuse(fmt.Sprintf("no selected spec matches %q", r.Only), "the name of a spec, or a part of it", "CONTRIBUTING.md says how to list them")
	}
	s.Sayf("%d specs, %d of them run", len(r.all), chosen)
	return nil
}

// groups are what is expected of our specs without the change.
func (r *Run) groups() []failswithout.Group {
	var groups []failswithout.Group
	for _, suite := range r.Without.Suites {
		groups = append(groups, suite.Groups...)
	}
	return groups
}

// chosen are the specs to run: of ours, or of upstream's.
func (r *Run) chosen(ours bool) []string {
	only := r.Only
	if only == nil {
		only = regexp.MustCompile("")
	}
	names := r.selection.Choose(r.all, ours, !r.All && r.Only == nil, only)
	if !ours || r.Target == GateOn {
		return names
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(r.groups(), func(g failswithout.Group) bool {
			return g.On(r.Target) == failswithout.NotRun && slices.Contains(g.Tests, Short(name))
		})
	})
}

// run runs one part of the specs, and keeps its results.
func (r *Run) run(ctx context.Context, part string, ours bool, s *run.Step) error {
	chosen := r.chosen(ours)
	if len(chosen) == 0 {
		s.Sayf("none")
		return nil
	}
	program := r.arguments(part, "--ginkgo.focus="+Focus(chosen))
	if ours && r.Target != GateOn {
		program = append(program, "--short-timeouts")
	}
	arguments := append([]string{"--procs=" + fmt.Sprint(r.Procs), "--no-color", "--timeout=" + r.timeout(), "--poll-progress-after=3m", r.Program, "--"}, program...)
	failed := run.Cmd{Name: r.Ginkgo, Args: arguments, Dir: r.Work, Log: s.Log, Env: r.env()}.Run(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	results, err := Read(r.report(part))
	if err != nil {
		return errors.Join(failed, err)
	}
	results = Ran(results, chosen)
	r.results = append(r.results, results...)
	names := Failed(results)
	if failed != nil && len(names) == 0 {
		return failed
	}
	s.Sayf("%d specs run, %d fail; report: %s", len(chosen), len(names), r.report(part))
	wrong := Complaints(results, chosen)
	if ours && r.Target != GateOn {
		wrong = r.compare(chosen, results)
	} else {
		for _, name := range names {
			wrong = append(wrong, name+" failed")
		}
	}
	for _, w := range wrong {
		s.Sayf("%s", w)
	}
	r.wrong = append(r.wrong, wrong...)
	return nil
}

// compare compares what the chosen ones of ours do without the change with fails-without.yaml,
// and returns the differences. Without a pattern, all that the file has must have run, but
// slow ones where only the quick ones are chosen.
func (r *Run) compare(chosen []string, results []Result) []string {
	outcomes := toolchain.TestResult{Tests: map[string]toolchain.Outcome{}}
	for _, result := range results {
		outcomes.Tests[Short(result.Name)] = result.Outcome
	}
	suite := failswithout.Suite{Groups: r.groups()}
	for i, g := range suite.Groups {
		suite.Groups[i].Tests = slices.DeleteFunc(slices.Clone(g.Tests), func(test string) bool {
			named := func(name string) bool { return Short(name) == test }
			return (r.Only != nil || !r.All && slices.ContainsFunc(r.all, named)) && !slices.ContainsFunc(chosen, named)
		})
	}
	return r.Without.Check(suite, r.Target, outcomes)
}

// timeout is when ginkgo gives up, and says where each spec that goes on is. The quick ones take three minutes.
func (r *Run) timeout() string {
	if r.All {
		return "3h"
	}
	return "20m"
}

// Check refuses what is wrong.
func (r *Run) Check() error {
	if len(r.wrong) == 0 {
		return nil
	}
	return run.Refuse(fmt.Sprintf("%d tests did not behave as expected, target %s:\n    %s", len(r.wrong), r.Target, strings.Join(r.wrong, "\n    ")),
		"specs that pass, or are in test-e2e/suite/skipped.yaml, or fail as test-e2e/fails-without.yaml says",
		"make e2e TARGET="+r.Target+" ONLY='<part of the name>'; CONTRIBUTING.md")
}
