// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"capacityv2.internal/scripts/build"
	"capacityv2.internal/scripts/check/e2e"
	"capacityv2.internal/scripts/cluster"
	"capacityv2.internal/scripts/cluster/node"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
)

// specProgram is the end-to-end test program.
const specProgram = "e2e.test"

// mockPrograms are those of test-e2e/mock.
var mockPrograms = []string{"hostpathplugin", "csi-node-driver-registrar"}

// buildSpecs builds the test program, what runs it, and what is in the images that its
// specs ask for.
func buildSpecs(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	if err := toolchain.BuildTools(ctx, ws, s, toolchain.SpecTools...); err != nil {
		return err
	}
	dir := ws.EndToEnd()
	packages := []string{}
	for _, name := range mockPrograms {
		packages = append(packages, "./mock/"+name)
	}
	if err := toolchain.Build(ctx, dir, ws.Components(), s.Log, packages...); err != nil {
		return err
	}
	if err := toolchain.Build(ctx, ws.Tree(), ws.Components(), s.Log, "./test/images/agnhost"); err != nil {
		return err
	}
	return toolchain.BuildTest(ctx, dir, filepath.Join(ws.Components(), specProgram), s.Log, "./suite")
}

// specImages are images under the names that upstream's specs ask for. The provisioner
// is the one in the folder components.
func specImages(ctx context.Context, ws workspace.Workspace, components string, s *run.Step) ([]node.Image, error) {
	references, err := e2e.Images(ctx, filepath.Join(ws.Components(), specProgram), s.Log)
	if err != nil {
		return nil, err
	}
	box, shell, err := cluster.Busybox(ctx, s)
	if err != nil {
		return nil, err
	}
	// The specs of raw block volumes use flags that busybox's dd does not have. busybox's shell
	// takes no other dd, and dash has no let.
	files, err := cluster.DynamicPrograms(ctx, s, "bash", "dd")
	if err != nil {
		return nil, err
	}
	files["bin/busybox"] = box
	delete(shell, "bin/dd")
	shell["bin/sh"] = "bash"
	agnhost := maps.Clone(files)
	agnhost["agnhost"] = filepath.Join(ws.Components(), "agnhost")
	images := map[string]node.Image{
		"agnhost":                {Entrypoint: []string{"/agnhost"}, Command: []string{"pause"}, Links: shell, Files: agnhost},
		"busybox":                {Command: []string{"sh"}, Links: shell, Files: files},
		"csi-attacher":           cluster.ProgramImage("", "csi-attacher", ws.Bin()),
		build.ProvisionerProgram: cluster.ProgramImage("", build.ProvisionerProgram, components),
	}
	// Of these the storage specs use the shell alone.
	images["nginx"], images["glibc-dns-testing"] = images["busybox"], images["busybox"]
	for _, name := range mockPrograms {
		images[name] = cluster.ProgramImage("", name, ws.Components())
	}
	var list []node.Image
	for name, image := range images {
		if len(references[name]) == 0 {
			return nil, run.Refuse("upstream's specs name no image of "+name,
				"one in the output of e2e.test --list-images", "git grep "+name+" scripts/check, and remove it there")
		}
		for _, r := range references[name] {
			image.Reference = r
			list = append(list, image)
		}
	}
	slices.SortFunc(list, func(a, b node.Image) int { return strings.Compare(a.Reference, b.Reference) })
	return list, nil
}
