package verbs

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"capacityv2.internal/scripts/e2e"
	"capacityv2.internal/scripts/node"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/toolchain"
)

// specProgram is the end-to-end test program.
const specProgram = "e2e.test"

// mockPrograms are those of test-e2e/mock.
var mockPrograms = []string{"hostpathplugin", "csi-node-driver-registrar"}

// buildSpecs builds the test program, what runs it, and what is in the images that its
// specs ask for.
func (a *App) buildSpecs(ctx context.Context, s *run.Step) error {
	if err := toolchain.BuildTools(ctx, a.WS, s, toolchain.SpecTools...); err != nil {
		return err
	}
	dir := a.endToEndTests()
	packages := []string{}
	for _, name := range mockPrograms {
		packages = append(packages, "./mock/"+name)
	}
	if err := toolchain.Build(ctx, dir, a.WS.Components(), s.Log, packages...); err != nil {
		return err
	}
	if err := toolchain.Build(ctx, a.WS.Tree(), a.WS.Components(), s.Log, "./test/images/agnhost"); err != nil {
		return err
	}
	return toolchain.BuildTest(ctx, dir, filepath.Join(a.WS.Components(), specProgram), s.Log, "./suite")
}

// specImages are images under the names that upstream's specs ask for. The provisioner
// is the one in the folder components.
func (a *App) specImages(ctx context.Context, components string, s *run.Step) ([]node.Image, error) {
	references, err := e2e.Images(ctx, filepath.Join(a.WS.Components(), specProgram), s.Log)
	if err != nil {
		return nil, err
	}
	box, shell, err := busybox(ctx, s)
	if err != nil {
		return nil, err
	}
	// The specs of raw block volumes use flags that busybox's dd does not have. busybox's shell
	// takes no other dd, and dash has no let.
	files, err := dynamicPrograms(ctx, s, "bash", "dd")
	if err != nil {
		return nil, err
	}
	files["bin/busybox"] = box
	delete(shell, "bin/dd")
	shell["bin/sh"] = "bash"
	agnhost := maps.Clone(files)
	agnhost["agnhost"] = filepath.Join(a.WS.Components(), "agnhost")
	images := map[string]node.Image{
		"agnhost":          {Entrypoint: []string{"/agnhost"}, Command: []string{"pause"}, Links: shell, Files: agnhost},
		"busybox":          {Command: []string{"sh"}, Links: shell, Files: files},
		"csi-attacher":     programImage("", "csi-attacher", a.WS.Bin()),
		provisionerProgram: programImage("", provisionerProgram, components),
	}
	// Of these the storage specs use the shell alone.
	images["nginx"], images["glibc-dns-testing"] = images["busybox"], images["busybox"]
	for _, name := range mockPrograms {
		images[name] = programImage("", name, a.WS.Components())
	}
	var list []node.Image
	for name, image := range images {
		if len(references[name]) == 0 {
			return nil, run.Refuse("upstream's specs name no image of "+name, "one in the output of e2e.test --list-images", "git grep "+name+" scripts/verbs, and remove it there")
		}
		for _, r := range references[name] {
			image.Reference = r
			list = append(list, image)
		}
	}
	slices.SortFunc(list, func(a, b node.Image) int { return strings.Compare(a.Reference, b.Reference) })
	return list, nil
}
