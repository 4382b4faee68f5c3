package verbs

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/workspace"
)

// forecast tells the outcome of every patch on another base; with the patch file of a
// change that upstream may take, also on the base with that change.
func (a *App) forecast(ctx context.Context, p workspace.Project, o base.Options, file string) error {
	r := a.reporter("rebase")
	dir := rebaseDir(p, "forecast-"+o.Version)
	name := filepath.Base(file)
	var plain, with []series.Result
	tasks := a.apply(a.rebaseTree(p, o, dir, true))
	if file != "" {
		tasks = append(tasks,
			onTree(dir, "base tree with "+name, func(ctx context.Context, repo gitrepo.Repo) error { return series.AddCandidate(ctx, repo, file) }),
			a.takenNames(p, dir),
			rebasePatches("patches with "+name, p, dir, true, &with),
			onTree(dir, "base tree without it", series.DropCandidate))
	}
	tasks = append(tasks, a.takenNames(p, dir), rebasePatches("patches", p, dir, true, &plain))
	if err := r.Run(ctx, tasks...); err != nil {
		return err
	}
	r.Printf("rebase of %s to %s: %s\n", p.Title, o.Version, tally(plain))
	if file != "" {
		r.Printf("the same with %s: %s\n%s\n", name, tally(with), verdict(name, plain, with))
	}
	r.Printf("tree: %s\n", dir)
	r.Done()
	return nil
}

// onTree is a task on the repository in dir.
func onTree(dir, name string, do func(context.Context, gitrepo.Repo) error) run.Task {
	return run.Task{Name: name, Do: func(ctx context.Context, s *run.Step) error { return do(ctx, gitrepo.Open(dir, s.Log)) }}
}

// verdict says which patches a change of upstream's breaks.
func verdict(name string, plain, with []series.Result) string {
	broken := series.Broken(plain, with)
	if len(broken) == 0 {
		return name + " breaks no patch"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s breaks %d of %d patches; one can cause others, because each is tried without those that conflicted:", name, len(broken), len(with))
	for _, r := range broken {
		fmt.Fprintf(&b, "\n  %s: %s", r.Patch.Name, strings.Join(r.Files, ", "))
	}
	return b.String()
}

// tally counts the outcomes.
func tally(results []series.Result) string {
	n := map[series.Outcome]int{}
	for _, r := range results {
		n[r.Outcome]++
	}
	var parts []string
	for _, o := range []series.Outcome{series.Clean, series.Fuzz, series.Upstream, series.Conflict} {
		parts = append(parts, fmt.Sprintf("%d %s", n[o], o))
	}
	return strings.Join(parts, ", ")
}
