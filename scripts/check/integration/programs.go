// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"capacityv2.internal/scripts/build"
	"capacityv2.internal/scripts/check/overrides"
	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch"
)

// needs are the programs that the tests of a folder start, beside etcd.
type needs struct {
	components         []string
	provisioner, guide bool
	// stock is whether they start all stock programs, too.
	stock bool
}

// server is the only program that most tests start.
var server = needs{components: []string{"kube-apiserver"}}

// needsOf has the folders that start more.
var needsOf = map[string]needs{
	"publishing":   {components: []string{"kube-apiserver", "kube-scheduler"}, provisioner: true},
	"driverguide":  {components: []string{"kube-apiserver", "kube-scheduler", "kubectl"}, provisioner: true, guide: true},
	"apifields":    {components: server.components, stock: true},
	"skew":         {components: build.ControlPlane, provisioner: true, stock: true},
	"drivershapes": {components: build.ControlPlane, provisioner: true, stock: true},
}

// Programs builds what the suites of every change start.
func Programs(ws workspace.Workspace) []run.Task {
	return programs(ws, needs{components: []string{"kube-apiserver", "kube-scheduler", "kubectl"}, provisioner: true, guide: true})
}

// LongPrograms builds what the others start beside that.
func LongPrograms(ws workspace.Workspace) []run.Task {
	return []run.Task{
		build.Components(ws, build.ControlPlane...), build.Stock(ws, build.ControlPlane...), build.StockProvisioner(ws),
		ws.Task("the guide for authors of drivers, with the race detector", followGuideWithRace),
	}
}

// ProgramsOf builds what the tests of some folders start.
func ProgramsOf(ws workspace.Workspace, folders ...string) []run.Task {
	var all needs
	for _, folder := range folders {
		n, ok := needsOf[folder]
		if !ok {
			n = server
		}
		for _, name := range n.components {
			if !slices.Contains(all.components, name) {
				all.components = append(all.components, name)
			}
		}
		all.provisioner, all.guide, all.stock = all.provisioner || n.provisioner, all.guide || n.guide, all.stock || n.stock
	}
	return programs(ws, all)
}

func programs(ws workspace.Workspace, n needs) []run.Task {
	tasks := []run.Task{build.Tools(ws, "build etcd", toolchain.Etcd), build.Components(ws, n.components...)}
	if n.provisioner {
		tasks = append(tasks, build.Provisioner(ws))
	}
	if n.guide {
		tasks = append(tasks, patch.Overrides(ws), ws.Task("the guide for authors of drivers", followGuide))
	}
	if n.stock {
		tasks = append(tasks, build.Stock(ws, build.ControlPlane...), build.StockProvisioner(ws))
	}
	return tasks
}

// guidePage is the guide for authors of drivers.
func guidePage(ws workspace.Workspace) string {
	return filepath.Join(ws.Root, "docs", "tutorials", "first-driver.md")
}

func followGuide(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	return overrides.FollowGuide(ctx, guidePage(ws), ws.Root, Guide(ws), "", s)
}

// followGuideWithRace builds for a second time what the guide says.
func followGuideWithRace(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	return overrides.FollowGuide(ctx, guidePage(ws), ws.Root, GuideWithRace(ws), "CGO_ENABLED=1 go build -race .\n", s)
}

// programsHash is that of the programs that are built for the integration tests.
func programsHash(ws workspace.Workspace) (string, error) {
	var names []string
	for _, folder := range []string{Guide(ws), GuideWithRace(ws)} {
		names = append(names, filepath.Join(filepath.Base(folder), guideProgram))
	}
	for _, folder := range []string{ws.Components(), ws.StockComponents()} {
		for _, program := range append([]string{build.ProvisionerProgram, "kubectl"}, build.ControlPlane...) {
			names = append(names, filepath.Join(filepath.Base(folder), program))
		}
	}
	return files.Hash(os.DirFS(ws.Work), names...)
}
