package release

import (
	"context"
	"fmt"
	"path"
	"slices"

	"capacityv2.internal/scripts/workspace"
)

// products are the projects with programs.
var products = map[string]product{
	workspace.Kubernetes:          kubernetes,
	workspace.ExternalProvisioner: sidecar("csi-provisioner"),
}

// product is what a release has of a project beside its source.
type product struct {
	// check refuses a tree whose own build scripts make something else.
	check func(ctx context.Context, tree string) error
	// variables of the programs that the linker sets, in the form package.name=value.
	variables func(Stamp) []string
	archives  []archive
}

// archive is a tarball with programs.
type archive struct {
	name string // of the file, without the platform
	top  string // folder of everything in it
	bin  string // folder of the programs, below top; empty: top
	// packages of the programs, relative to the tree.
	packages []string
	// full archives have the licences of what is linked in, the version, the source and
	// images. They are for Linux only.
	full    bool
	folders []string // empty ones, below top
	images  []imageSource
}

// archives of the project for p.
func (p Platform) archives(project string) []archive {
	return slices.DeleteFunc(slices.Clone(products[project].archives), func(a archive) bool { return a.full && p.OS != "linux" })
}

// programs returns the sorted names of what is built for p from a project.
func (p Platform) programs(project string) []string {
	var out []string
	for _, a := range p.archives(project) {
		out = append(out, a.programs()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// programs returns the names of those in a.
func (a archive) programs() []string {
	var out []string
	for _, t := range a.packages {
		out = append(out, path.Base(t))
	}
	return out
}

// target returns the package of a project's program, relative to the tree.
func target(project, name string) (string, error) {
	for _, a := range products[project].archives {
		for _, t := range a.packages {
			if path.Base(t) == name {
				return "./" + t, nil
			}
		}
	}
	return "", fmt.Errorf("%s is not a program of the %s release", name, project)
}
