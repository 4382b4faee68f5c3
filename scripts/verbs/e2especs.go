package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"capacityv2.internal/scripts/cluster"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/prove"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/specs"
	"capacityv2.internal/scripts/toolchain"
)

// specRun is one run of specs on a target.
type specRun struct {
	app     *App
	status  cluster.Status
	target  string
	options E2EOptions

	selection specs.Selection
	expected  prove.Suite
	list      prove.Expectations
	// all are the names of all specs of the program.
	all     []string
	results []specs.Result
	// wrong is what the run is refused for at the end.
	wrong []string
}

// tasks are the steps of the run, with others in the middle: our specs need a driver
// that has published what is free, and leave it so. Nothing that fails stops the run.
func (r *specRun) tasks(others ...progress.Task) []progress.Task {
	tasks := []progress.Task{
		{Name: "choose specs", Do: r.choose},
		{Name: "our specs, " + r.target, Do: func(ctx context.Context, s *progress.Step) error { return r.run(ctx, "ours", true, s) }},
	}
	for _, t := range others {
		tasks = append(tasks, progress.Task{Name: t.Name, Do: func(ctx context.Context, s *progress.Step) error {
			if err := t.Do(ctx, s); err != nil {
				s.Sayf("FAILED (log: %s)", s.LogPath)
				r.wrong = append(r.wrong, t.Name+": "+err.Error())
			}
			return ctx.Err()
		}})
	}
	return append(tasks,
		progress.Task{Name: "upstream's specs, " + r.target, Do: func(ctx context.Context, s *progress.Step) error { return r.run(ctx, "upstream", false, s) }},
		progress.Task{Name: "results", Do: r.judge})
}

// reports is the folder of the JUnit files of a part of the run.
func (r *specRun) reports(part string) string {
	return filepath.Join(r.app.WS.Work, "e2e", r.target, part)
}

// program is the call of the test program, for the cluster and the reference driver.
func (r *specRun) program(part string, arguments ...string) []string {
	return append([]string{
		"--kubeconfig=" + r.status.Kubeconfig, "--kubectl-path=" + filepath.Join(r.status.Components, "kubectl"), "--provider=local",
		"-storage.testdriver=" + filepath.Join(r.app.specSuite(), "reference.yaml"), "--report-dir=" + r.reports(part), "--ginkgo.no-color",
	}, arguments...)
}

// choose reads the lists, and asks the program for its specs.
func (r *specRun) choose(ctx context.Context, s *progress.Step) (err error) {
	if r.selection, err = specs.ReadSelection(r.app.specSuite()); err != nil {
		return err
	}
	if r.list, err = r.app.specExpectations(); err != nil {
		return err
	}
	for _, suite := range r.list.Suites {
		r.expected.Groups = append(r.expected.Groups, suite.Groups...)
	}
	if err := os.RemoveAll(r.reports("")); err != nil {
		return err
	}
	err = run.Cmd{Name: filepath.Join(r.app.WS.Components(), specProgram), Args: r.program("dry-run", "--ginkgo.dry-run"), Log: s.Log}.Run(ctx)
	if err != nil {
		return err
	}
	known, err := specs.Read(r.report("dry-run"))
	if err != nil {
		return err
	}
	r.all = specs.Names(known)
	if stale := r.selection.Stale(r.all); len(stale) > 0 {
		return progress.Refuse("in test-e2e/suite:\n    "+strings.Join(stale, "\n    "), "entries for specs that there are", "remove the entry, or correct it")
	}
	chosen := len(r.chosen(true)) + len(r.chosen(false))
	if chosen == 0 {
		return progress.Refuse(fmt.Sprintf("no selected spec matches %q", cmp.Or(r.options.Focus, everything)), "the name of a spec, or a part of it", "docs/e2e.md says how to list them")
	}
	s.Sayf("%d specs, %d of them run", len(r.all), chosen)
	return nil
}

// chosen are the specs to run: of ours, or of upstream's.
func (r *specRun) chosen(ours bool) []string {
	names := r.selection.Choose(r.all, ours, !r.options.All && r.options.Focus == nil, cmp.Or(r.options.Focus, everything))
	if !ours || r.target == gateOn {
		return names
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(r.expected.Groups, func(g prove.Group) bool {
			return g.On(r.target) == prove.NotRun && slices.Contains(g.Tests, specs.Short(name))
		})
	})
}

func (r *specRun) report(part string) string { return filepath.Join(r.reports(part), "junit_01.xml") }

// run runs one part of the specs, and keeps its results.
func (r *specRun) run(ctx context.Context, part string, ours bool, s *progress.Step) error {
	chosen := r.chosen(ours)
	if len(chosen) == 0 {
		s.Sayf("none")
		return nil
	}
	program := r.program(part, "--ginkgo.focus="+specs.Focus(chosen))
	if ours && r.target != gateOn {
		program = append(program, "--short-timeouts")
	}
	arguments := append([]string{"--procs=" + fmt.Sprint(r.options.Procs), "--no-color", "--timeout=3h", filepath.Join(r.app.WS.Components(), specProgram), "--"}, program...)
	ginkgo := run.Cmd{Name: filepath.Join(r.app.WS.Bin(), "ginkgo"), Args: arguments, Dir: r.app.WS.Work, Log: s.Log,
		Env: []string{r.app.binPath(), "CAPACITYV2_TARGET=" + r.target}}
	failed := ginkgo.Run(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	results, err := specs.Read(r.report(part))
	if err != nil {
		return errors.Join(failed, err)
	}
	results = specs.Ran(results, chosen)
	r.results = append(r.results, results...)
	names := specs.Failed(results)
	if failed != nil && len(names) == 0 {
		return failed
	}
	s.Sayf("%d specs run, %d fail; report: %s", len(chosen), len(names), r.report(part))
	wrong := specs.Complaints(results, chosen)
	if ours && r.target != gateOn {
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

// compare compares what ours do without the change with fails-without.yaml, and returns
// the differences.
func (r *specRun) compare(chosen []string, results []specs.Result) []string {
	outcomes := toolchain.TestResult{Tests: map[string]toolchain.Outcome{}}
	for _, result := range results {
		outcomes.Tests[specs.Short(result.Name)] = result.Outcome
	}
	return r.list.Check(specs.Restrict(r.expected, chosen, r.options.Focus == nil), r.target, outcomes)
}

// judge writes the table, if all specs have run, and refuses what is wrong.
func (r *specRun) judge(ctx context.Context, s *progress.Step) error {
	if r.options.All && r.options.Focus == nil {
		tree, err := r.app.tree(s.Log).Tree(ctx, "HEAD")
		if err != nil {
			return err
		}
		result := specs.Run{Tree: tree, Counts: r.selection.Count(r.all, r.results)}
		if err := specs.WriteTable(filepath.Join(r.app.WS.Root, "docs"), e2eTargets, r.target, result); err != nil {
			return err
		}
	}
	if len(r.wrong) > 0 {
		return progress.Refuse(fmt.Sprintf("%d tests did not behave as expected, target %s:\n    %s", len(r.wrong), r.target, strings.Join(r.wrong, "\n    ")),
			"specs that pass, or are in test-e2e/suite/skipped.yaml, or fail as test-e2e/fails-without.yaml says", "make e2e TARGET="+r.target+" FOCUS='<part of the name>'; docs/e2e.md")
	}
	return nil
}
