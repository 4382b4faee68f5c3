// Package overrides lets other Go modules build against the patched staging
// modules: it finds out which modules the series changes, writes them as a
// module proxy of files, and prints the lines to paste into a go.mod.
package overrides

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"capacityv2.internal/scripts/files"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/series"
)

// StagingDir is where a tree has the source of its staging modules.
const StagingDir = "staging/src/"

// listHeader is the comment of the list.
const listHeader = `# The modules that the series change, and that another Go module has to
# override to build against it. Written by make export, checked by make lint.
`

// list is the file staging-overrides/modules.yaml.
type list struct {
	Modules []string `json:"modules"`
}

// Module is one that a series changes.
type Module struct {
	Path string
	// Tree is the repository with its source: at HEAD, not in the work tree. Folder
	// is where, "" for the top.
	Tree, Folder string
	// Version is the published one that it is made from, such as v0.37.2.
	Version string
}

// Staging returns the paths of the staging modules that the patches change, sorted.
func Staging(patches []series.Patch) []string {
	var modules []string
	for _, path := range series.Paths(patches) {
		rest, ok := strings.CutPrefix(path, StagingDir)
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

// CheckList refuses a list at path that is another one. It needs no source tree.
func CheckList(path string, modules []string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return progress.Refuse("no list of the overridden modules: "+err.Error(), path, "make export")
	}
	var l list
	if err := yaml.UnmarshalStrict(b, &l); err != nil {
		return progress.Refuse(fmt.Sprintf("%s: %v", path, err), "the file that make export writes", "make export")
	}
	if !slices.Equal(l.Modules, modules) {
		return progress.Refuse(
			fmt.Sprintf("%s lists %s", path, names(l.Modules)),
			"the modules that the patches change: "+names(modules),
			"make export")
	}
	return nil
}

// WriteList writes the list to path, and leaves a file that is right already as it
// is.
func WriteList(path string, modules []string) error {
	b, err := yaml.Marshal(list{Modules: modules})
	if err != nil {
		return err
	}
	b = append([]byte(listHeader), b...)
	_, err = files.Update(path, b)
	return err
}

func names(modules []string) string {
	if len(modules) == 0 {
		return "none"
	}
	return strings.Join(modules, ", ")
}
