// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"

	"capacityv2.internal/scripts/build/release"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch/base"
)

// ControlPlane are the components that the series changes.
var ControlPlane = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// ProvisionerProgram is that of external-provisioner.
const ProvisionerProgram = "csi-provisioner"

// Components builds components with the series.
func Components(ws workspace.Workspace, programs ...string) run.Task {
	return run.Task{Name: "build the components", Do: func(ctx context.Context, s *run.Step) error {
		return release.BuildComponents(ctx, ws, workspace.Kubernetes, s.Log, ws.Components(), programs...)
	}}
}

// Stock builds components from the base without the series.
func Stock(ws workspace.Workspace, programs ...string) run.Task {
	return run.Task{Name: "build the stock components", Do: func(ctx context.Context, s *run.Step) error {
		if err := base.Stock(ctx, ws.Tree(), ws.Stock(), s); err != nil {
			return err
		}
		v, err := release.ReadVersion(ws)
		if err != nil {
			return err
		}
		stamp, err := release.TreeStamp(ctx, workspace.Kubernetes, ws.Stock(), release.Version{Base: v.Base})
		if err != nil {
			return err
		}
		return release.Build(ctx, ws.Stock(), stamp, s.Log, ws.StockComponents(), programs...)
	}}
}

// Provisioner builds external-provisioner with the series.
func Provisioner(ws workspace.Workspace) run.Task {
	return run.Task{Name: "build external-provisioner", Do: func(ctx context.Context, s *run.Step) error {
		return release.BuildComponents(ctx, ws, workspace.ExternalProvisioner, s.Log, ws.Components(), ProvisionerProgram)
	}}
}

// StockProvisioner builds external-provisioner as upstream does: with the modules that its own go.mod names.
func StockProvisioner(ws workspace.Workspace) run.Task {
	return run.Task{Name: "build the stock provisioner", Do: func(ctx context.Context, s *run.Step) error {
		p, err := ws.Project(workspace.ExternalProvisioner)
		if err != nil {
			return err
		}
		dir := p.Tree() + "-stock"
		if err := base.AddWorktree(ctx, p.Repo(s.Log), dir, base.Ref); err != nil {
			return err
		}
		return toolchain.BuildFor(ctx, dir, ws.StockComponents(), toolchain.Strip, []string{"GOWORK=off"}, s.Log, "./cmd/"+ProvisionerProgram)
	}}
}

// Tools builds pinned tools.
func Tools(ws workspace.Workspace, name string, tools ...toolchain.Tool) run.Task {
	return run.Task{Name: name, Do: func(ctx context.Context, s *run.Step) error { return toolchain.BuildTools(ctx, ws, s, tools...) }}
}
