package verbs

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/cluster"
	"capacityv2.internal/scripts/node"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/toolchain"
	"capacityv2.internal/scripts/workspace"
)

// stockProvisionerImage is external-provisioner without the series.
const stockProvisionerImage = "capacityv2.internal/csi-provisioner:stock"

// central is the name of the part without a cluster.
const central = "central"

// chain measures scheduler, provisioner and driver together, on a cluster of its own and
// with a central provisioner for many nodes, and writes docs/benchmarks/chain.md, or, for
// some of the scenarios, a page in the folder of the logs.
func (a *App) chain(ctx context.Context, o BenchOptions) error {
	page, only := filepath.Join(a.benchmarks(), "chain.md"), cmp.Or(o.Only, everything)
	if o.Only != nil {
		page = filepath.Join(a.WS.Logs(), "chain.md")
	}
	second := filepath.Join(a.WS.Logs(), "chain-"+central+".md")
	if err := os.Remove(second); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if only.MatchString(central) {
		if err := a.central(ctx, second); err != nil || only.String() == central {
			return err
		}
	}
	return a.onChain(ctx, "bench SUITE=chain", nil, func(st cluster.Status) error {
		return a.do(ctx, "bench", run.Task{Name: "scenarios", Do: func(ctx context.Context, s *run.Step) error {
			s.Sayf("writing %s", page)
			env := []string{"CHAIN_LOGS=" + a.WS.Logs(), "CHAIN_ONLY=" + only.String(), "CHAIN_RUNS=" + strconv.Itoa(o.Runs),
				"CHAIN_REPORT=" + page, "CHAIN_SECOND=" + second}
			return a.testCluster(ctx, st, env, s.Log, s.Out, "-timeout", "12h", "-v", "-run", "^TestChain$", "./chain")
		}})
	})
}

// central measures one provisioner for many nodes, and writes its table to a file.
func (a *App) central(ctx context.Context, file string) error {
	return a.do(ctx, "bench", a.apply(a.buildEtcd(), a.buildStockProvisioner(), a.buildProvisioner(),
		run.Task{Name: "one provisioner for many nodes", Do: func(ctx context.Context, s *run.Step) error {
			s.Sayf("writing %s", file)
			env := []string{"STOCK_CSI_PROVISIONER=" + filepath.Join(a.WS.StockComponents(), provisionerProgram), "CENTRAL_REPORT=" + file}
			return a.integration(ctx, s, env, "-run", "^$", "-bench", "^BenchmarkCentral$", "-benchtime", "1x", "-timeout", "2h", "./central")
		}},
	)...)
}

// onChain does something on a cluster of its own that has the reference driver and the
// images of both provisioners, after further things were built. The cluster is ended
// before it is left, whatever happens.
func (a *App) onChain(ctx context.Context, verb string, build []run.Task, do func(cluster.Status) error) (err error) {
	other := run.Refuse("a local cluster runs from "+a.WS.Cluster(),
		"no running cluster, because make "+verb+" starts its own and replaces its scheduler", "make down, then make "+verb)
	if before, err := cluster.StatusOf(a.WS); err != nil {
		return err
	} else if before.Alive {
		return other
	}
	stock := programImage(stockProvisionerImage, provisionerProgram, a.WS.StockComponents())
	build = append([]run.Task{a.buildStockProvisioner()}, build...)
	started, err := a.Up(ctx, &cluster.Options{DefaultNodes: e2eNodes, Images: []node.Image{stock}}, referenceDriver, build...)
	if started != "" {
		defer func() { err = errors.Join(err, a.end(context.WithoutCancel(ctx), started)) }()
	}
	if err != nil {
		return err
	}
	if started == "" { // by somebody else, meanwhile
		return other
	}
	st, err := cluster.StatusOf(a.WS)
	if err != nil {
		return err
	}
	return do(st)
}

// buildStockProvisioner builds external-provisioner as upstream does: with the modules
// that its own go.mod names.
func (a *App) buildStockProvisioner() run.Task {
	return run.Task{Name: "build the stock provisioner", Do: func(ctx context.Context, s *run.Step) error {
		p, err := a.WS.Project(workspace.ExternalProvisioner)
		if err != nil {
			return err
		}
		dir := p.Tree() + "-stock"
		if err := base.AddWorktree(ctx, p.Repo(s.Log), dir, base.Ref); err != nil {
			return err
		}
		return toolchain.BuildFor(ctx, dir, a.WS.StockComponents(), toolchain.Strip, []string{"GOWORK=off"}, s.Log, "./cmd/"+provisionerProgram)
	}}
}
