package release

import (
	"cmp"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/workspace"
)

// module is a Go module that a program is made of.
type module struct {
	Path    string
	Version string // empty for a module of the tree
	// Sum is the h1: sum of go.sum. Empty for a module of the tree, and where the
	// source (a git checkout) has a vendor folder, which go.sum does not cover.
	Sum string
}

// inTree is what Go says instead of a version for a module of a workspace.
const inTree = "(devel)"

// programModules returns the modules of the program at path, sorted, and the
// Go release that built it.
func programModules(path string) (mods []module, goVersion string, err error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, "", fmt.Errorf("modules of %s: %w", path, err)
	}
	add := func(path, version, sum string) {
		if version == inTree {
			version = ""
		}
		mods = append(mods, module{path, version, sum})
	}
	add(info.Main.Path, info.Main.Version, info.Main.Sum)
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		add(d.Path, d.Version, d.Sum)
	}
	sortModules(mods)
	return mods, info.GoVersion, nil
}

func sortModules(mods []module) {
	slices.SortFunc(mods, func(a, b module) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Version, b.Version), strings.Compare(b.Sum, a.Sum))
	})
}

// baseModules returns the modules that the base of a project is assembled from,
// with the sums that pin them.
func baseModules(p workspace.Project) ([]module, error) {
	pinned, err := base.Pinned(p.Pin())
	if err != nil {
		return nil, err
	}
	sums, err := base.PinnedSums(p.Pin())
	if err != nil {
		return nil, err
	}
	var out []module
	for _, m := range pinned {
		sum, ok := sums[m]
		if !ok {
			return nil, fmt.Errorf("%s/go.sum has no sum of %s", p.Pin(), m)
		}
		out = append(out, module{m.Path, m.Version, sum})
	}
	sortModules(out)
	return out, nil
}

// dirHash turns an h1: sum into hex, the form that SPDX and in-toto use.
func dirHash(sum string) (string, error) {
	b, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:"))
	if err != nil || len(b) != 32 || !strings.HasPrefix(sum, "h1:") {
		return "", fmt.Errorf("%q is no h1: sum of a Go module", sum)
	}
	return hex.EncodeToString(b), nil
}

// purl is the package URL of m.
func (m module) purl() string {
	return "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
}

// union returns all modules of lists once, with the sum where one list has it.
func union(lists ...[]module) []module {
	all := slices.Concat(lists...)
	sortModules(all)
	return slices.CompactFunc(all, func(a, b module) bool { return a.Path == b.Path && a.Version == b.Version })
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
