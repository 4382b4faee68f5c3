// Package overrides lets other Go modules build against the patched staging
// modules: it finds out which modules the series changes, writes them as a
// module proxy of files, and prints the lines to paste into a go.mod.
package overrides

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/files"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/workspace"
)

// stagingDir is where a tree has the source of its staging modules.
const stagingDir = "staging/src/"

// listHeader is the comment of the list.
const listHeader = `# The modules that the series change, and that another Go module has to
# override to build against it. Written by make export, checked by make lint.
`

// Module is one that a series changes.
type Module struct {
	Path string
	// Tree is the repository with its source: at HEAD, not in the work tree. Folder
	// is where, "" for the top.
	Tree, Folder string
	// Version is the published one that it is made from, such as v0.37.2.
	Version string
}

// staging returns the paths of the staging modules that the patches change, sorted.
func staging(patches []series.Patch) []string {
	var modules []string
	for _, path := range series.Paths(patches) {
		rest, ok := strings.CutPrefix(path, stagingDir)
		if !ok {
			continue
		}
		// A module is k8s.io/NAME; files beside the modules belong to none.
		parts := strings.SplitN(rest, "/", 3)
		if len(parts) == 3 {
			modules = append(modules, parts[0]+"/"+parts[1])
		}
	}
	slices.Sort(modules)
	return slices.Compact(modules)
}

// Modules returns those that another Go module has to override: the libraries, and what the series change of
// the staging modules.
func Modules(ws workspace.Workspace) ([]Module, error) {
	projects, err := ws.Projects()
	if err != nil {
		return nil, err
	}
	var modules []Module
	for _, p := range projects {
		if !p.Library && !p.Staging {
			continue
		}
		version, err := base.PinnedVersion(p.Pin(), p.Module)
		if err != nil {
			return nil, err
		}
		if p.Library {
			modules = append(modules, Module{Path: p.Module, Tree: p.Tree(), Version: version})
			continue
		}
		if version, err = base.StagingVersion(version); err != nil {
			return nil, err
		}
		patches, err := series.Read(p.Series())
		if err != nil {
			return nil, err
		}
		for _, path := range staging(patches) {
			modules = append(modules, Module{Path: path, Tree: p.Tree(), Folder: stagingDir + path, Version: version})
		}
	}
	return modules, nil
}

// list is the file staging-overrides/modules.yaml.
type list struct {
	Modules []string `json:"modules"`
}

func listOf(modules []Module) (l list) {
	for _, m := range modules {
		l.Modules = append(l.Modules, m.Path)
	}
	return l
}

// CheckList refuses a list at path that has other modules. It needs no source tree.
func CheckList(path string, modules []Module) error {
	var have list
	want := listOf(modules)
	if err := files.ReadYAML(path, &have); err != nil || !slices.Equal(have.Modules, want.Modules) {
		return run.Refuse(fmt.Sprintf("%s lists %s, error: %v", path, strings.Join(have.Modules, ", "), err),
			"the modules that the patches change: "+strings.Join(want.Modules, ", "), "make export")
	}
	return nil
}

// WriteList writes the list to path, and leaves a file that is right already as it
// is.
func WriteList(path string, modules []Module) error {
	b, err := yaml.Marshal(listOf(modules))
	if err != nil {
		return err
	}
	_, err = files.Update(path, append([]byte(listHeader), b...))
	return err
}
