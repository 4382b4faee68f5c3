// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
)

// GoWork is the file that names the modules that a tree compiles against.
const GoWork = "go.work"

// GoWorkFiles are [GoWork] and its sums. No commit of a tree has them.
var GoWorkFiles = []string{GoWork, GoWork + ".sum"}

// Kubernetes is the project whose tree the cluster, the release and the tests are
// made from.
const Kubernetes = "kubernetes"

// ExternalProvisioner is the project with the sidecar that publishes capacity.
const ExternalProvisioner = "external-provisioner"

// ProjectFile describes a project, in its folder of patches/.
const ProjectFile = "project.yaml"

// Project is an upstream project with a series of its own.
type Project struct {
	// Name is that of its folder below patches/.
	Name string `json:"-"`
	// Title is what people call it.
	Title string `json:"title"`
	// Module is the path of its main Go module.
	Module string `json:"module"`
	// Staging says that the tree has more modules below staging/src, those that its
	// go.work names.
	Staging bool `json:"staging,omitempty"`
	// Library says that other modules import the main module.
	Library bool `json:"library,omitempty"`
	// TestArgs are arguments of go test for its packages.
	TestArgs []string `json:"testArgs,omitempty"`
	// Generators are upstream's, in the order in which they depend on each other.
	Generators []Generator `json:"generators,omitempty"`
	// HandWritten matches what no generator writes although an output matches, AlsoGenerated what some do although none
	// does, or although it looks like hand-written.
	HandWritten   []*regexp.Regexp `json:"handWritten,omitempty"`
	AlsoGenerated []*regexp.Regexp `json:"alsoGenerated,omitempty"`
	// MixGenerated says that a patch holds what is generated from it. Elsewhere, generated
	// files are in patches of their own.
	MixGenerated bool `json:"mixGenerated,omitempty"`
	// Dependents are packages that no patch touches, and whose tests say whether the
	// patches are right.
	Dependents []string `json:"dependents,omitempty"`
	// Names are names and protobuf numbers of ours, beside the feature gates, that a base
	// must not have in the files that match NamesIn.
	Names   []string `json:"names"`
	NamesIn []string `json:"namesIn"`

	ws Workspace
}

// Generator is a command of upstream's that writes code.
type Generator struct {
	Command []string `json:"command"`
	// Modules are the folders in which it is called, each if the series touches it. None: the top.
	Modules []string `json:"modules,omitempty"`
	// Outputs match what it writes. Each has to match a file that it writes anew.
	Outputs []*regexp.Regexp `json:"outputs,omitempty"`
	// Needs are programs beside Go.
	Needs []string `json:"needs,omitempty"`
}

// Generated reports whether the file at a slash-separated path of the tree is written by a generator.
func (p Project) Generated(path string) bool {
	matches := func(re *regexp.Regexp) bool { return re.MatchString(path) }
	return slices.ContainsFunc(p.AlsoGenerated, matches) || !slices.ContainsFunc(p.HandWritten, matches) &&
		slices.ContainsFunc(p.Generators, func(g Generator) bool { return slices.ContainsFunc(g.Outputs, matches) })
}

// Projects returns those of patches/, by name.
func (w Workspace) Projects() ([]Project, error) {
	files, err := filepath.Glob(filepath.Join(w.Root, "patches", "*", ProjectFile))
	if err != nil {
		return nil, err
	}
	var all []Project
	for _, f := range files {
		p, err := w.Project(filepath.Base(filepath.Dir(f)))
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// Project returns one of them, and refuses an unknown name.
func (w Workspace) Project(name string) (Project, error) {
	p := Project{Name: name, ws: w}
	path := filepath.Join(p.Series(), ProjectFile)
	err := files.ReadYAML(path, &p)
	if errors.Is(err, fs.ErrNotExist) {
		known, _ := filepath.Glob(filepath.Join(w.Root, "patches", "*", ProjectFile))
		for i, k := range known {
			known[i] = filepath.Base(filepath.Dir(k))
		}
		return p, run.Refuse(fmt.Sprintf("unknown project %q", name), "one of "+strings.Join(known, ", "), "the same command with PROJECT="+Kubernetes)
	}
	if err != nil || p.Title == "" || p.Module == "" {
		return p, run.Refuse(fmt.Sprintf("%s: %v", path, err), "title and module of the project", "git checkout -- "+path)
	}
	return p, nil
}

// Series is the folder of its patches, with the [GoWorkFiles] of its tree where that compiles against the patched modules of
// other projects. The tree of Kubernetes has a go.work.
func (p Project) Series() string { return filepath.Join(p.ws.Root, "patches", p.Name) }

// Pin is the folder of the go.mod that pins its version.
func (p Project) Pin() string { return p.ws.Pin(p.Name) }

// Tree is its source with the series.
func (p Project) Tree() string { return filepath.Join(p.ws.Work, p.Name) }

// Repo is the repository that the tree is. The log, which may be nil, takes what git prints.
func (p Project) Repo(log io.Writer) gitrepo.Repo { return gitrepo.Open(p.Tree(), log) }

// kubernetes serves what needs its folders only.
func (w Workspace) kubernetes() Project { return Project{Name: Kubernetes, ws: w} }

// Each is a task that does the same for the project of a name, or for all of them if that is "".
func (w Workspace) Each(task, name string, do func(context.Context, Project, *run.Step) error) run.Task {
	return run.Task{Name: task, Do: func(ctx context.Context, s *run.Step) error {
		projects, err := w.Named(name)
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

// Named returns the project of a name, or all of them if that is "".
func (w Workspace) Named(name string) ([]Project, error) {
	if name == "" {
		return w.Projects()
	}
	p, err := w.Project(name)
	return []Project{p}, err
}
