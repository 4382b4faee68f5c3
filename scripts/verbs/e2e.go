package verbs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/cluster"
	"capacityv2.internal/scripts/e2e"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/toolchain"
)

// E2EOptions are those of E2E. With a focus, the tests of kubectl are left out.
type E2EOptions struct {
	e2e.Options
	Cluster cluster.Options
	// Keep is whether the cluster stays.
	Keep bool
}

func e2eCommand(a *App) *cobra.Command {
	var o E2EOptions
	c := verb("e2e", "Bring up a local cluster, run the end-to-end tests on it, ours and upstream's, and end it", `
A cluster that runs already is used, and left alone. A spec that is skipped fails the run,
unless test-e2e/suite/skipped.yaml says why. docs/e2e.md says more.`,
		"  capacityv2 e2e --focus 'CSI Mock volume storage capacity'", func(ctx context.Context) error { return a.E2E(ctx, o) })
	clusterFlags(c, &o.Cluster)
	c.Flags().StringVar(&o.Target, "target", "", "gate-on, gate-off, or stock: components without the series (default: gate-on)")
	patternFlag(c, &o.Focus, "focus", "only specs, slow ones too, whose name matches")
	c.Flags().BoolVar(&o.All, "all", false, "all selected specs, slow ones too, with a table of them in _work/results")
	c.Flags().IntVar(&o.Procs, "procs", SpecProcs, "how many specs run side by side")
	c.Flags().BoolVar(&o.Keep, "keep", false, "leave the cluster to the next run, until make down")
	return c
}

// e2eNodes is what the tests need: a node to drain, one without room, and one that
// gets room.
const e2eNodes = 3

// SpecProcs is how many specs run side by side: they wait more than they compute.
const SpecProcs = 12

// E2E runs the end-to-end tests on a local cluster, with the reference driver: those of
// kubectl, our specs and upstream's. A cluster that runs already is used and left alone;
// one that is started here is ended, whatever happens. Without nodes there are
// only the tests of kubectl.
func (a *App) E2E(ctx context.Context, o E2EOptions) (err error) {
	if o.Target, err = e2e.Target(o.Target); err != nil {
		return err
	}
	o.Cluster.DefaultNodes = e2eNodes
	driver := referenceDriver
	var build []run.Task
	if withoutNodes(o.Cluster) {
		driver = ""
		if o.Target != e2e.GateOn || o.Focus != nil || o.All {
			return run.Refuse("TARGET, FOCUS or ALL, for a cluster without nodes", "none of them: they need nodes", "make e2e, without CLUSTER_MODE")
		}
		// The tests compile against all of them.
		build = []run.Task{a.each("base trees", "", a.ensureBase), a.each("apply the series", "", a.ensureSeries)}
	} else if build, err = a.prepareSpecs(o.Target, &o.Cluster); err != nil {
		return err
	}
	started, err := a.Up(ctx, &o.Cluster, driver, build...)
	if started != "" && !o.Keep {
		defer func() { err = errors.Join(err, a.end(context.WithoutCancel(ctx), started)) }()
	}
	if err != nil {
		return err
	}
	st, err := cluster.StatusOf(a.WS)
	if err != nil {
		return err
	}
	kubectl := run.Task{Name: "tests with kubectl", Do: func(ctx context.Context, s *run.Step) error {
		return a.testKubectl(ctx, st, driver, o.Cluster, s)
	}}
	if driver == "" {
		return a.do(ctx, "e2e", kubectl)
	}
	without, err := a.specExpectations()
	if err != nil {
		return err
	}
	specs := &e2e.Run{
		Program: filepath.Join(a.WS.Components(), specProgram), Ginkgo: filepath.Join(a.WS.Bin(), "ginkgo"), Env: []string{a.binPath()},
		Suite: a.specSuite(), Work: filepath.Join(a.WS.Work, "e2e"), Cluster: st,
		Options: o.Options, Without: without,
	}
	var others []run.Task
	if o.Target == e2e.GateOn && o.Focus == nil {
		others = append(others, kubectl)
	}
	return a.do(ctx, "e2e", append(specs.Tasks(others...), run.Task{Name: "results", Do: func(context.Context, *run.Step) error {
		if o.All && o.Focus == nil {
			return errors.Join(a.keepResult("e2e-"+o.Target+".md", specs.Table()), specs.Check())
		}
		return specs.Check()
	}})...)
}

// withoutNodes reports whether the user has asked for a cluster without nodes.
func withoutNodes(asked cluster.Options) bool { return asked.Mode == string(cluster.ModeControlPlane) }

// testCluster runs tests of test-e2e on a cluster. They alone get what [cluster.Status.Env] is: the go command may need the proxy.
func (a *App) testCluster(ctx context.Context, st cluster.Status, env []string, log, out io.Writer, args ...string) error {
	env = append(env, a.binPath(), a.histories(), "COMPONENTS="+st.Components, "CLUSTER_GROUP="+st.Group)
	args = append([]string{"-count=1", "-exec", "env '" + strings.Join(st.Env(), "' '") + "'"}, args...)
	return toolchain.Test(ctx, a.endToEndTests(), env, log, out, args...)
}

// testKubectl runs the tests that are plain Go.
func (a *App) testKubectl(ctx context.Context, st cluster.Status, driver string, asked cluster.Options, s *run.Step) error {
	env := []string{"KUBECTL=" + st.Kubectl(), "CAPACITYV2_CLUSTER_MODE=" + string(st.Mode), "CAPACITYV2_DRIVER=" + driver}
	var results bytes.Buffer
	err := a.testCluster(ctx, st, env, s.Log, io.MultiWriter(s.Out, &results), "-v", "-timeout", "15m", "./api")
	return errors.Join(err, refuseSkips(results.String(), asked))
}

var skipLine = regexp.MustCompile(`(?m)^\s*--- SKIP: (\S+)`)

// refuseSkips refuses results with skipped tests, unless the user has asked for a
// cluster without nodes.
func refuseSkips(results string, asked cluster.Options) error {
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
	return run.Refuse("skipped tests: "+strings.Join(skipped, ", "), "all of them run", "as root: make e2e; or without nodes: make e2e CLUSTER_MODE=control-plane")
}
