package verbs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/cluster"
	"capacityv2.internal/scripts/e2e"
	"capacityv2.internal/scripts/release"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/workspace"
)

// stockPrograms are the components that are built without the series: all that the
// series changes. The nodes have ours.
var stockPrograms = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// prepareSpecs sets the options of a cluster for a target, and returns what is to be done
// before the cluster starts: specs run programs and images of their own.
func (a *App) prepareSpecs(target string, o *cluster.Options) ([]run.Task, error) {
	list, err := a.WS.Gates()
	if err != nil {
		return nil, err
	}
	o.Gates = e2e.Gates(list, target)
	var tasks []run.Task
	if target == e2e.Stock {
		o.Components = a.WS.StockComponents()
		tasks = append(tasks, run.Task{Name: "build the stock components", Do: a.buildStockComponents}, a.buildStockProvisioner())
	}
	return append(tasks, run.Task{Name: "build the specs and what they run", Do: func(ctx context.Context, s *run.Step) error {
		if err := a.buildSpecs(ctx, s); err != nil {
			return err
		}
		images, err := a.specImages(ctx, o.Components, s)
		o.Images = append(o.Images, images...)
		return err
	}}), nil
}

// buildStockComponents fills the folder of stock components. What the series does not
// change in them is a link to ours.
func (a *App) buildStockComponents(ctx context.Context, s *run.Step) error {
	if err := a.buildStock(ctx, s, stockPrograms...); err != nil {
		return err
	}
	for _, name := range cluster.Components() {
		if slices.Contains(stockPrograms, name) {
			continue
		}
		link := filepath.Join(a.WS.StockComponents(), name)
		if err := errors.Join(os.RemoveAll(link), os.Symlink(filepath.Join(a.WS.Components(), name), link)); err != nil {
			return err
		}
	}
	return nil
}

// buildStock builds components from the base without the series.
func (a *App) buildStock(ctx context.Context, s *run.Step, programs ...string) error {
	if err := base.Stock(ctx, a.WS.Tree(), a.WS.Stock(), s); err != nil {
		return err
	}
	v, err := release.ReadVersion(a.WS)
	if err != nil {
		return err
	}
	stamp, err := release.TreeStamp(ctx, workspace.Kubernetes, a.WS.Stock(), release.Version{Base: v.Base})
	if err != nil {
		return err
	}
	return release.Build(ctx, a.WS.Stock(), stamp, s.Log, a.WS.StockComponents(), programs...)
}
