// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/build"
	"capacityv2.internal/scripts/check/e2e"
	"capacityv2.internal/scripts/check/failswithout"
	"capacityv2.internal/scripts/check/integration"
	"capacityv2.internal/scripts/cluster"
	"capacityv2.internal/scripts/cluster/local"
	"capacityv2.internal/scripts/cluster/node"
	"capacityv2.internal/scripts/ground/cli"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch"
)

// e2eOptions say which specs run, and where. With a pattern, the tests of kubectl are left out.
type e2eOptions struct {
	e2e.Options
	cluster local.Options
	// keep is whether the cluster stays.
	keep bool
}

func e2eVerb() *cobra.Command {
	var o e2eOptions
	c := cli.Verb("e2e", "Bring up a local cluster, run the end-to-end tests on it, ours and upstream's, and end it", `
A cluster that runs already is used, and left alone. A spec that is skipped fails the run,
unless test-e2e/suite/skipped.yaml says why. CONTRIBUTING.md says more.

With --long, it runs slow specs too. Without a target or a pattern, it then does so on all targets, each on a cluster of its
own, kills and pauses the parts of one more under load, and goes on after a failure. FAULTS_SEED in the environment has
the faults in the order of an earlier run.`,
		"  capacityv2 e2e --only 'CSI Mock volume storage capacity'", func(ctx context.Context, ws workspace.Workspace) error {
			if o.All && o.Target == "" && o.Only == nil {
				return everywhere(ctx, ws, o)
			}
			return endToEnd(ctx, ws, o)
		})
	cluster.Flags(c, &o.cluster)
	c.Flags().StringVar(&o.Target, "target", "", "`gate-on|gate-off|stock`: the last is components without the series (default: gate-on)")
	cli.PatternFlag(c, &o.Only, "only", "only specs, slow ones too, whose name matches")
	longFlag(c, &o.All, "slow specs too; on all targets, and with faults, unless one is given")
	// They wait more than they compute.
	c.Flags().IntVar(&o.Procs, "procs", 12, "how many specs, `N`, run side by side")
	c.Flags().BoolVar(&o.keep, "keep", false, "leave the cluster to the next run, until make down")
	return c
}

// everywhere runs all specs on each target, and then the faults. An interrupt ends it.
func everywhere(ctx context.Context, ws workspace.Workspace, o e2eOptions) error {
	var errs []error
	for _, o.Target = range e2e.Targets {
		if ctx.Err() == nil {
			errs = append(errs, endToEnd(ctx, ws, o))
		}
	}
	if ctx.Err() == nil {
		errs = append(errs, faults(ctx, ws))
	}
	return errors.Join(append(errs, ctx.Err())...) // what is left out has not passed
}

// endToEnd runs the end-to-end tests on a local cluster, with the reference driver: those of
// kubectl, our specs and upstream's. A cluster that runs already is used and left alone;
// one that is started here is ended, whatever happens. Without nodes there are
// only the tests of kubectl.
func endToEnd(ctx context.Context, ws workspace.Workspace, o e2eOptions) (err error) {
	if o.Target, err = e2e.Target(o.Target); err != nil {
		return err
	}
	o.cluster.DefaultNodes = cluster.Nodes
	driver := cluster.ReferenceDriver
	var extra cluster.Extra
	if withoutNodes(o.cluster) {
		driver = ""
		if o.Target != e2e.GateOn || o.Only != nil || o.All {
			return run.Refuse("TARGET, ONLY or LONG, for a cluster without nodes", "none of them: they need nodes", "make e2e, without CLUSTER_MODE")
		}
		extra.Tasks = patch.Trees(ws, "") // the tests compile against all of them
	} else if extra, err = prepareSpecs(ws, o.Target, &o.cluster); err != nil {
		return err
	}
	started, err := cluster.Up(ctx, ws, o.cluster, driver, extra)
	if started != "" && !o.keep {
		defer func() { err = errors.Join(err, cluster.End(context.WithoutCancel(ctx), ws, started)) }()
	}
	if err != nil {
		return err
	}
	st, err := local.StatusOf(ws)
	if err != nil {
		return err
	}
	kubectl := run.Task{Name: "tests with kubectl", Do: func(ctx context.Context, s *run.Step) error {
		return testKubectl(ctx, ws, st, driver, o.cluster, s)
	}}
	if driver == "" {
		return ws.Run(ctx, "e2e", kubectl)
	}
	without, err := failswithout.ReadList(ws.EndToEnd())
	if err != nil {
		return err
	}
	specs := &e2e.Run{
		Program: filepath.Join(ws.Components(), specProgram), Ginkgo: filepath.Join(ws.Bin(), "ginkgo"), Env: []string{ws.Path()},
		Suite: specSuite(ws), Work: filepath.Join(ws.Work, "e2e"), Cluster: st,
		Options: o.Options, Without: without,
	}
	results := []run.Task{{Name: "results", Do: func(context.Context, *run.Step) error { return specs.Check() }}}
	if o.Target != e2e.GateOn || o.Only != nil {
		return ws.Run(ctx, "e2e", append(specs.Tasks(), results...)...)
	}
	return ws.Run(ctx, "e2e", slices.Concat(specs.Tasks(kubectl), []run.Task{integration.GateOff(ws)}, results)...)
}

// specSuite is the folder of the end-to-end test program.
func specSuite(ws workspace.Workspace) string { return filepath.Join(ws.EndToEnd(), "suite") }

// withoutNodes reports whether the user has asked for a cluster without nodes.
func withoutNodes(asked local.Options) bool { return asked.Mode == string(local.ModeControlPlane) }

// prepareSpecs sets the options of a cluster for a target, and returns what it needs: specs run programs and images of
// their own.
func prepareSpecs(ws workspace.Workspace, target string, o *local.Options) (cluster.Extra, error) {
	list, err := ws.Gates()
	if err != nil {
		return cluster.Extra{}, err
	}
	o.Gates = e2e.Gates(list, target)
	components := ws.Components()
	var tasks []run.Task
	if target == e2e.Stock {
		components = ws.StockComponents()
		o.Components = components
		tasks = append(tasks, build.Stock(ws, build.ControlPlane...), build.StockProvisioner(ws), linkStock(ws))
	}
	return cluster.Extra{
		Tasks: append(tasks, ws.Task("build the specs and what they run", buildSpecs)),
		Images: func(ctx context.Context, s *run.Step) ([]node.Image, error) {
			return specImages(ctx, ws, components, s)
		},
	}, nil
}

// linkStock completes the folder of stock components: what the series does not change in them is a link to ours.
func linkStock(ws workspace.Workspace) run.Task {
	return run.Task{Name: "link the other components", Do: func(context.Context, *run.Step) error {
		for _, name := range local.Components() {
			if slices.Contains(build.ControlPlane, name) {
				continue
			}
			link := filepath.Join(ws.StockComponents(), name)
			if err := errors.Join(os.RemoveAll(link), os.Symlink(filepath.Join(ws.Components(), name), link)); err != nil {
				return err
			}
		}
		return nil
	}}
}

// testCluster runs tests of test-e2e on a cluster. They alone get what [local.Status.Env] is: the go command may need the proxy.
func testCluster(ctx context.Context, ws workspace.Workspace, st local.Status, env []string, log, out io.Writer, args ...string) error {
	env = append(env, ws.Path(), "COMPONENTS="+st.Components, "CLUSTER_GROUP="+st.Group)
	args = append([]string{"-count=1", "-exec", "env '" + strings.Join(st.Env(), "' '") + "'"}, args...)
	return toolchain.Test(ctx, ws.EndToEnd(), env, log, out, args...)
}

// testKubectl runs the tests that are plain Go.
func testKubectl(ctx context.Context, ws workspace.Workspace, st local.Status, driver string, asked local.Options, s *run.Step) error {
	env := []string{"KUBECTL=" + st.Kubectl(), "CAPACITYV2_CLUSTER_MODE=" + string(st.Mode), "CAPACITYV2_DRIVER=" + driver}
	var results bytes.Buffer
	err := testCluster(ctx, ws, st, env, s.Log, io.MultiWriter(s.Out, &results), "-v", "-timeout", "15m", "./api")
	return errors.Join(err, refuseSkips(results.String(), asked))
}

var skipLine = regexp.MustCompile(`(?m)^\s*--- SKIP: (\S+)`)

// refuseSkips refuses results with skipped tests, unless the user has asked for a
// cluster without nodes.
func refuseSkips(results string, asked local.Options) error {
	if withoutNodes(asked) {
		return nil
	}
	var skipped []string
	for _, m := range skipLine.FindAllStringSubmatch(results, -1) {
		skipped = append(skipped, m[1])
	}
	if len(skipped) == 0 {
		return nil
	}
	return run.Refuse("skipped tests: "+strings.Join(skipped, ", "),
		"all of them run", "as root: make e2e; or without nodes: make e2e CLUSTER_MODE=control-plane")
}
