// Package overrides lets other Go modules build against the patched staging
// modules: it finds out which modules the series changes, writes them as a
// module proxy of files, and prints the lines to paste into a go.mod.
package overrides

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/series"
)

// stagingDir is where the main tree has the source of the staging modules.
const stagingDir = "staging/src/"

// listHeader is the comment of the list.
const listHeader = `# The staging modules that the series changes, and that another Go module has to
# override to build against it. Written by make export, checked by make lint.
`

// list is the file staging-overrides/modules.yaml.
type list struct {
	Modules []string `json:"modules"`
}

// Modules returns the paths of the staging modules that the patches change,
// sorted.
func Modules(patches []series.Patch) []string {
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

// CheckList refuses a list at path that is not the one of the patches. It needs
// no source tree.
func CheckList(path string, patches []series.Patch) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return progress.Refuse("no list of the overridden modules: "+err.Error(), path, "make export")
	}
	var l list
	if err := yaml.UnmarshalStrict(b, &l); err != nil {
		return progress.Refuse(fmt.Sprintf("%s: %v", path, err), "the file that make export writes", "make export")
	}
	if want := Modules(patches); !slices.Equal(l.Modules, want) {
		return progress.Refuse(
			fmt.Sprintf("%s lists %s", path, names(l.Modules)),
			"the staging modules that the patches change: "+names(want),
			"make export")
	}
	return nil
}

// WriteList writes the list of the patches to path, and leaves a file that is
// right already as it is.
func WriteList(path string, patches []series.Patch) error {
	b, err := yaml.Marshal(list{Modules: Modules(patches)})
	if err != nil {
		return err
	}
	b = append([]byte(listHeader), b...)
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, b) {
		return nil
	}
	return os.WriteFile(path, b, 0o644)
}

func names(modules []string) string {
	if len(modules) == 0 {
		return "none"
	}
	return strings.Join(modules, ", ")
}
