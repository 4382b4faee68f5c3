// Package verbs is what a person can ask for. A verb is a short list of steps
// from the other packages.
package verbs

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gates"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/toolchain"
	"capacityv2.internal/scripts/workspace"
)

// treeDisk and buildDisk are the GiB that a verb needs: the tree with its
// history, and the build cache of all components.
const (
	treeDisk  = 2
	buildDisk = 12
)

// App runs verbs on one checkout of this repository.
type App struct {
	WS  workspace.Workspace
	Out io.Writer
	// Source is a git checkout of Kubernetes at the pinned tag, which the tree is made
	// from. Empty: Go modules.
	Source string
}

func (a *App) reporter(verb string) *progress.Reporter {
	return progress.New(a.Out, verb, a.WS.Logs())
}

// do runs tasks as a verb.
func (a *App) do(ctx context.Context, verb string, tasks ...progress.Task) error {
	r := a.reporter(verb)
	if err := r.Run(ctx, tasks...); err != nil {
		return err
	}
	r.Done()
	return nil
}

// tree is the patched tree as a repository.
func (a *App) tree(log io.Writer) gitrepo.Repo { return gitrepo.Open(a.WS.Tree(), log) }

func (a *App) pin() string { return a.WS.Pin("kubernetes") }

// baseOptions reads the pinned version.
func (a *App) baseOptions() (base.Options, error) {
	v, err := base.PinnedVersion(a.pin())
	return base.Options{Pin: a.pin(), Version: v, Checkout: a.Source}, err
}

// makeTree checks the machine and makes the base tree.
func (a *App) makeTree() []progress.Task {
	return []progress.Task{{Name: "check the machine", Do: a.checkMachine}, {Name: "base tree", Do: a.ensureBase}}
}

// apply makes the tree and puts the series on it, and then come further tasks.
func (a *App) apply(further ...progress.Task) []progress.Task {
	return slices.Concat(a.makeTree(), []progress.Task{{Name: "apply the series", Do: a.ensureSeries}}, further)
}

func (a *App) checkMachine(ctx context.Context, s *progress.Step) error {
	if err := toolchain.RequirePrograms("git"); err != nil {
		return err
	}
	if err := toolchain.RequireGo(ctx); err != nil {
		return err
	}
	return toolchain.RequireDisk(a.WS.Work, treeDisk)
}

func (a *App) ensureBase(ctx context.Context, s *progress.Step) error {
	o, err := a.baseOptions()
	if err != nil {
		return err
	}
	return base.Ensure(ctx, a.WS.Tree(), o, s)
}

func (a *App) ensureSeries(ctx context.Context, s *progress.Step) error {
	return series.Apply(ctx, a.tree(s.Log), a.WS.Series(), s)
}

// featureGates is the value of --feature-gates for the components.
func (a *App) featureGates() (string, error) {
	l, err := gates.Read(a.WS.Gates())
	return l.Enabled(), err
}

// binPath is PATH with our tools first.
func (a *App) binPath() string {
	return "PATH=" + strings.Join([]string{a.WS.Bin(), os.Getenv("PATH")}, string(filepath.ListSeparator))
}
