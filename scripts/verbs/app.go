// Package verbs is what a person can ask for. A verb is a short list of steps
// from the other packages.
package verbs

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/toolchain"
	"capacityv2.internal/scripts/workspace"
)

// treeDisk and buildDisk are the GiB that a verb needs: the tree with its
// history, and Go's cache of all components.
const (
	treeDisk  = 2
	buildDisk = 8
)

// App runs verbs on one checkout of this repository.
type App struct {
	WS  workspace.Workspace
	Out io.Writer
	// Source is a git checkout of Kubernetes at the pinned tag, which the tree is made
	// from. Empty: Go modules.
	Source string
}

func (a *App) reporter(verb string) *run.Reporter {
	return run.NewReporter(a.Out, verb, a.WS.Logs())
}

// do runs tasks as a verb.
func (a *App) do(ctx context.Context, verb string, tasks ...run.Task) error {
	r := a.reporter(verb)
	if err := r.Run(ctx, tasks...); err != nil {
		return err
	}
	r.Done()
	return nil
}

// tree is the patched tree of Kubernetes as a repository.
func (a *App) tree(log io.Writer) gitrepo.Repo { return gitrepo.Open(a.WS.Tree(), log) }

// projects returns one project, or all of them if its name is "".
func (a *App) projects(name string) ([]workspace.Project, error) {
	if name == "" {
		return a.WS.Projects()
	}
	p, err := a.WS.Project(name)
	return []workspace.Project{p}, err
}

// each is a task that does the same for one project, or for all of them if that is "".
func (a *App) each(name, project string, do func(context.Context, workspace.Project, *run.Step) error) run.Task {
	return run.Task{Name: name, Do: func(ctx context.Context, s *run.Step) error {
		projects, err := a.projects(project)
		if err != nil {
			return err
		}
		for _, p := range projects {
			if err := do(ctx, p, s); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
		}
		return nil
	}}
}

// baseOptions reads the pinned version. A checkout is one of Kubernetes.
func (a *App) baseOptions(p workspace.Project) (base.Options, error) {
	v, err := base.PinnedVersion(p.Pin(), p.Module)
	o := base.Options{Title: p.Title, Module: p.Module, Pin: p.Pin(), Version: v, Staging: p.Staging, Workspace: p.Series()}
	if p.Staging {
		o.Checkout = a.Source
	}
	return o, err
}

// makeTree checks the machine and makes the base trees.
func (a *App) makeTree() []run.Task {
	return []run.Task{{Name: "check the machine", Do: a.checkMachine}, a.each("base trees", "", a.ensureBase)}
}

// apply makes the trees and puts the series on them, and then come further tasks.
func (a *App) apply(further ...run.Task) []run.Task {
	return slices.Concat(a.makeTree(), []run.Task{a.each("apply the series", "", a.ensureSeries)}, further)
}

func (a *App) checkMachine(ctx context.Context, s *run.Step) error {
	if err := toolchain.RequirePrograms(ctx, "git"); err != nil {
		return err
	}
	if err := toolchain.RequireGo(ctx); err != nil {
		return err
	}
	return toolchain.RequireDisk(a.WS.Work, treeDisk)
}

func (a *App) ensureBase(ctx context.Context, p workspace.Project, s *run.Step) error {
	o, err := a.baseOptions(p)
	if err != nil {
		return err
	}
	return base.Ensure(ctx, p.Tree(), o, s)
}

func (a *App) ensureSeries(ctx context.Context, p workspace.Project, s *run.Step) error {
	s.Sayf("%s: %s", p.Title, p.Tree())
	return series.Apply(ctx, p.Repo(s.Log), p.Series(), s)
}

// binPath is PATH with our tools first.
func (a *App) binPath() string {
	return "PATH=" + strings.Join([]string{a.WS.Bin(), os.Getenv("PATH")}, string(filepath.ListSeparator))
}
