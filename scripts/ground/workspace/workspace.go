// SPDX-License-Identifier: Apache-2.0

// Package workspace knows what the repository says of itself, and where things are: the projects,
// the feature gates, and what the tooling makes in the one git-ignored work folder.
package workspace

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"capacityv2.internal/scripts/ground/run"
)

// Workspace is a checkout of this repository.
type Workspace struct {
	// Root is the repository's top folder.
	Root string
	// Work is the folder for everything that the tooling makes.
	Work string
	// Checkout is one of Kubernetes at the pinned tag, which the tree is made from. Empty: Go modules.
	Checkout string
	// Out takes lines for people. Nil: standard output.
	Out io.Writer
}

// Run runs tasks as a verb.
func (w Workspace) Run(ctx context.Context, verb string, tasks ...run.Task) error {
	r := w.Reporter(verb)
	if err := r.Run(ctx, tasks...); err != nil {
		return err
	}
	r.Done()
	return nil
}

// Task is a task that is given the workspace.
func (w Workspace) Task(name string, do func(context.Context, Workspace, *run.Step) error) run.Task {
	return run.Task{Name: name, Do: func(ctx context.Context, s *run.Step) error { return do(ctx, w, s) }}
}

// Reporter prints what a verb does.
func (w Workspace) Reporter(verb string) *run.Reporter {
	return run.NewReporter(w.Printer(), verb, w.Logs())
}

// Printer takes lines for people.
func (w Workspace) Printer() io.Writer {
	if w.Out == nil {
		return os.Stdout
	}
	return w.Out
}

// Find returns the workspace that holds dir, by its [GatesFile]. The
// work folder is Root/_work; go.work names it, so it cannot be moved.
func Find(dir string) (Workspace, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Workspace{}, err
	}
	for d := abs; ; d = filepath.Dir(d) {
		if isFile(filepath.Join(d, GatesFile)) && isFile(filepath.Join(d, GoWork)) {
			return Workspace{Root: d, Work: filepath.Join(d, "_work")}, nil
		}
		if d == filepath.Dir(d) {
			return Workspace{}, run.Refuse("no checkout of this repository at or above "+abs,
				"a folder with "+GatesFile+" and "+GoWork, "the same command from inside the checkout")
		}
	}
}

func isFile(p string) bool {
	fi, err := os.Stat(p)
	return err == nil && fi.Mode().IsRegular()
}

// Series is the folder of the Kubernetes patches.
func (w Workspace) Series() string { return w.kubernetes().Series() }

// Revision is the file that counts the releases of all series on one base.
func (w Workspace) Revision() string { return filepath.Join(w.Root, "patches", "REVISION") }

// Pin is the folder of a module that pins the versions of one tool or source.
func (w Workspace) Pin(name string) string {
	return filepath.Join(w.Root, "scripts", "pins", name)
}

// Dist is where releases are written.
func (w Workspace) Dist() string { return filepath.Join(w.Root, "dist") }

// Tree is the Kubernetes tree, a git repository with the base and the series.
func (w Workspace) Tree() string { return w.kubernetes().Tree() }

// Stock is the base without the series, for tests against the stock components.
func (w Workspace) Stock() string { return w.Tree() + "-stock" }

// Bin holds the tools that we build (etcd, containerd, cfssl and so on).
func (w Workspace) Bin() string { return filepath.Join(w.Work, "bin") }

// Integration and EndToEnd are the folders of the black-box tests.
func (w Workspace) Integration() string { return filepath.Join(w.Root, "test-integration") }
func (w Workspace) EndToEnd() string    { return filepath.Join(w.Root, "test-e2e") }

// Path is PATH with our tools first, as a variable.
func (w Workspace) Path() string {
	return "PATH=" + w.Bin() + string(filepath.ListSeparator) + os.Getenv("PATH")
}

// Overrides has the lines with which another Go module builds against the trees.
func (w Workspace) Overrides() string { return filepath.Join(w.Work, "overrides", "go.mod.replace") }

// Components holds the components built from the patched tree.
func (w Workspace) Components() string { return filepath.Join(w.Work, "components") }

// StockComponents holds the programs built from the bases without the series.
func (w Workspace) StockComponents() string { return filepath.Join(w.Work, "stock-components") }

// Cluster holds the state of the local cluster.
func (w Workspace) Cluster() string { return filepath.Join(w.Work, "cluster") }

// Logs holds one folder of step logs for each verb.
func (w Workspace) Logs() string { return filepath.Join(w.Work, "logs") }
