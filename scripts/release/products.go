package release

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"slices"

	"capacityv2.internal/scripts/workspace"
)

// platform of a release is that of the machine that makes it: what is released has been
// tested there. tag is the same in upstream's file names.
const (
	platform = "linux/" + runtime.GOARCH
	tag      = "linux-" + runtime.GOARCH
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
	// full archives have the licences of what is linked in, the version, the source and images.
	full    bool
	folders []string // empty ones, below top
	images  []imageSource
}

// Programs returns the sorted names of what is built from a project.
func Programs(project string) []string {
	var all []string
	for _, a := range products[project].archives {
		all = append(all, a.programs()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (a archive) programs() []string {
	var names []string
	for _, pkg := range a.packages {
		names = append(names, path.Base(pkg))
	}
	return names
}

// packageOf returns the package of a project's program, relative to the tree.
func packageOf(project, program string) (string, error) {
	for _, a := range products[project].archives {
		for _, pkg := range a.packages {
			if path.Base(pkg) == program {
				return "./" + pkg, nil
			}
		}
	}
	return "", fmt.Errorf("%s is not a program of the %s release", program, project)
}
