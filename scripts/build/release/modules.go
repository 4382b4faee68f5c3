// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"debug/buildinfo"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	gomodule "golang.org/x/mod/module"

	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch/base"
)

// modules are Go modules with their h1: sums of go.sum. A module of a tree has no version. The sum
// is empty for those, and where the source (a git checkout) has a vendor folder, which go.sum does
// not cover.
type modules map[gomodule.Version]string

// inTree is what Go says instead of a version for a module of a workspace.
const inTree = "(devel)"

// programModules returns the modules of the program at path, and the Go release that built it.
func programModules(path string) (mods modules, goVersion string, err error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, "", fmt.Errorf("modules of %s: %w", path, err)
	}
	mods = modules{}
	for _, d := range append(info.Deps, &info.Main) {
		if d.Replace != nil {
			d = d.Replace
		}
		mods[gomodule.Version{Path: d.Path, Version: strings.TrimSuffix(d.Version, inTree)}] = d.Sum
	}
	return mods, info.GoVersion, nil
}

// baseModules returns the modules that the base of a project is assembled from,
// with the sums that pin them.
func baseModules(p workspace.Project) (modules, error) {
	pinned, errPinned := base.Pinned(p.Pin())
	sums, errSums := base.PinnedSums(p.Pin())
	if err := errors.Join(errPinned, errSums); err != nil {
		return nil, err
	}
	mods := modules{}
	for _, m := range pinned {
		if mods[m] = sums[m]; sums[m] == "" {
			return nil, fmt.Errorf("%s/go.sum has no sum of %s", p.Pin(), m)
		}
	}
	return mods, nil
}

// add adds others, with the sum where one of the two has it.
func (m modules) add(others modules) {
	for version, sum := range others {
		m[version] = cmp.Or(sum, m[version])
	}
}

// sorted returns those with a version.
func (m modules) sorted() []gomodule.Version {
	all := slices.Collect(maps.Keys(m))
	gomodule.Sort(all)
	return slices.DeleteFunc(all, func(v gomodule.Version) bool { return v.Version == "" })
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
