// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"path"
	"runtime"

	"capacityv2.internal/scripts/ground/workspace"
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
	archives  []bundle
}

// bundle is a tarball with programs.
type bundle struct {
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
func Programs(project string) []string { return sortedKeys(packages(project)) }

// packages maps the programs of a project to their packages, relative to the tree.
func packages(project string) map[string]string {
	all := map[string]string{}
	for _, a := range products[project].archives {
		for _, pkg := range a.packages {
			all[path.Base(pkg)] = "./" + pkg
		}
	}
	return all
}
