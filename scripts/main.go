// Command capacityv2 maintains the KEP-5925 patch series on Kubernetes: it
// assembles the base tree, applies and exports the patches, checks, builds and
// packs them, and runs a local cluster. `make help` lists the same verbs.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/cluster"
	"capacityv2.internal/scripts/verbs"
	"capacityv2.internal/scripts/workspace"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		if errors.Is(err, context.Canceled) {
			err = errors.New("interrupted")
		}
		fmt.Fprintf(os.Stderr, "\nerror: %v\n", err)
		os.Exit(1)
	}
}

// root builds the command with its verbs.
func root() *cobra.Command {
	app := &verbs.App{Out: os.Stdout}
	cmd := &cobra.Command{
		Use:           "capacityv2",
		Short:         "Maintain the KEP-5925 patch series on Kubernetes",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			ws, err := workspace.Find(".")
			app.WS = ws
			return err
		},
	}
	verb := func(use, short string, f func(context.Context) error) *cobra.Command {
		c := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return f(c.Context()) }}
		cmd.AddCommand(c)
		return c
	}
	cmd.PersistentFlags().StringVar(&app.Source, "kubernetes-src", "", "git checkout of Kubernetes at the pinned tag, from which the tree is made instead of from Go modules")

	var options cluster.Options
	clusterFlags := func(c *cobra.Command) {
		c.Flags().StringVar(&options.Nodes, "nodes", "", "number of nodes, 1 to 9 (default: what the verb needs, or what runs already)")
		c.Flags().StringVar(&options.Mode, "cluster-mode", "", "full or control-plane (default: full where a kubelet can run)")
		c.Flags().StringVar(&options.RuntimeEndpoint, "container-runtime-endpoint", "", "socket of your container runtime, unix:///PATH, for one node on this host")
	}
	var driver string
	up := verb("up", "Apply, build the custom release, and bring up a local cluster with the gates of feature-gates.yaml", func(ctx context.Context) error { return app.Up(ctx, options, driver) })
	clusterFlags(up)
	up.Flags().StringVar(&driver, "driver", "", "reference: install the reference CSI driver with the patched external-provisioner")
	verb("down", "End the local cluster and leave nothing", app.Down)
	verb("test", "Run lint, the unit tests of every touched package, and the integration tests", app.Test)
	var e2eOptions verbs.E2EOptions
	e2e := verb("e2e", "Bring up a local cluster, run the end-to-end tests on it, ours and upstream's, and end it; a skip that nobody has asked for fails", func(ctx context.Context) error {
		e2eOptions.Cluster = options
		return app.E2E(ctx, e2eOptions)
	})
	clusterFlags(e2e)
	e2e.Flags().StringVar(&e2eOptions.Target, "target", "", "gate-on, gate-off, or stock: components without the series (default: gate-on)")
	e2e.Flags().StringVar(&e2eOptions.Focus, "focus", "", "only specs whose name matches this regular expression, slow ones too")
	e2e.Flags().BoolVar(&e2eOptions.All, "all", false, "all selected specs, slow ones too, and their counts into docs/e2e.md")
	e2e.Flags().IntVar(&e2eOptions.Procs, "procs", verbs.SpecProcs, "how many specs run side by side")
	e2e.Flags().BoolVar(&e2eOptions.Keep, "keep", false, "leave the cluster to the next run, until make down")
	var scenarios string
	chain := verb("chain", "Measure scheduler, provisioner and reference driver together on a cluster, and write docs/benchmarks/chain.md", func(ctx context.Context) error { return app.Chain(ctx, scenarios) })
	chain.Flags().StringVar(&scenarios, "only", "", "only what matches this regular expression, by SCENARIO/SCHEDULER/PROVISIONER as in the report; the results of the others stay")
	verb("demo", "Show the stories of the KEP on a local cluster, before and after, and draw docs/images/stories.svg", app.Demo)
	var stress verbs.StressOptions
	testStress := verb("test-stress", "Run thousands of pods against the reservation of capacity, with faults and the race detector", func(ctx context.Context) error { return app.TestStress(ctx, stress) })
	testStress.Flags().IntVar(&stress.Pods, "pods", 10000, "number of pods for each policy")
	testStress.Flags().Int64Var(&stress.Seed, "seed", 0, "seed of the faults, as an earlier run has printed it; 0 takes one from the clock")
	var suite string
	upstreamSuites := verb("upstream-suites", "Run upstream's own integration suites with the gate off and on, and write docs/upstream-suites.md", func(ctx context.Context) error { return app.UpstreamSuites(ctx, suite) })
	upstreamSuites.Flags().StringVar(&suite, "suite", "", "only those whose folder in test/integration matches this regular expression")

	var withoutSuite string
	without := verb("fails-without", "Check that the integration tests fail with the gate off and on the stock server, and write the table of test-integration/README.md", func(ctx context.Context) error { return app.FailsWithout(ctx, withoutSuite) })
	without.Flags().StringVar(&withoutSuite, "suite", "", "only those whose folder in test-integration matches this regular expression")

	var night verbs.NightlyOptions
	nightly := verb("nightly", "Run what takes too long for every change: prove, upstream-suites, fails-without, test-stress, all end-to-end specs, the benchmarks once, and fuzz tests", func(ctx context.Context) error { return app.Nightly(ctx, night) })
	nightly.Flags().StringVar(&night.Only, "only", "", "only the parts that match this regular expression: prove, upstream-suites, fails-without, test-stress, e2e, smoke, fuzz")
	nightly.Flags().DurationVar(&night.FuzzTime, "fuzz-time", 10*time.Minute, "how long each fuzz test runs")
	nightly.Flags().IntVar(&night.Pods, "pods", 2000, "number of pods for each policy in the stress test")

	var measure verbs.BenchOptions
	bench := verb("bench", "Run the benchmarks, with upstream's code in the same run, and write docs/benchmarks", func(ctx context.Context) error { return app.Bench(ctx, measure) })
	bench.Flags().StringVar(&measure.Only, "only", "", "only runs whose name matches this regular expression; the results of the others stay")
	bench.Flags().BoolVar(&measure.ReportOnly, "report-only", false, "write the report again from the results of the last run")
	verb("tree", "Assemble the pinned base, from Go modules or from the checkout that --kubernetes-src names", app.Tree)
	verb("apply", "Put the series on the base tree, one commit per patch", app.Apply)
	verb("export", "Write the tree's commits back as patch files; unchanged patches stay untouched", app.Export)
	var project string
	projectFlag := func(c *cobra.Command) {
		c.Flags().StringVar(&project, "project", workspace.Kubernetes, "upstream project, a folder of patches/")
	}
	projectFlag(verb("edit", "Open a shell in the applied tree; save (export) or discard when it ends", func(ctx context.Context) error { return app.Edit(ctx, project, os.Stdin) }))

	var forecast bool
	rebase := &cobra.Command{
		Use: "rebase VERSION", Short: "Take over another base: the series on it with 3-way, its pin and its patch files", Args: cobra.ExactArgs(1),
		Example: "  capacityv2 rebase v1.38.0-alpha.0 --forecast",
		RunE: func(c *cobra.Command, args []string) error {
			return app.Rebase(c.Context(), project, args[0], forecast)
		},
	}
	rebase.Flags().BoolVar(&forecast, "forecast", false, "only tell the outcome of every patch: go on after a conflict, and leave all as it is")
	projectFlag(rebase)
	cmd.AddCommand(rebase)

	verb("lint", "Check the series without a source tree, and our own code", app.Lint)
	verb("verify", "Check round trip, tree lock, gates, each prefix, and that generated code is up to date", app.Verify)

	var scope, generated string
	codegen := verb("codegen", "Regenerate with upstream's own generators, and show what changed", func(ctx context.Context) error { return app.Codegen(ctx, generated, scope) })
	codegen.Flags().StringVar(&generated, "project", "", "upstream project, a folder of patches/ (default: all that have generators)")
	codegen.Flags().StringVar(&scope, "scope", "storage", "storage: what the series can influence; all: every generator")

	var proof verbs.ProveOptions
	prove := verb("prove", "Check that each patch is needed: the test that its Proven-By names fails without it", func(ctx context.Context) error { return app.Prove(ctx, proof) })
	prove.Flags().StringVar(&proof.Patch, "patch", "", "only patches whose file name matches this regular expression")
	prove.Flags().StringVar(&proof.Since, "since", "", "only patches that differ from those of this commit")

	verb("overrides", "Write a file:// module proxy with the patched staging modules, and the replace lines to paste", app.Overrides)
	var platforms string
	release := verb("release", "Pack dist/: tarballs, source, series, sums, manifest, SBOM and provenance", func(ctx context.Context) error { return app.Release(ctx, platforms) })
	release.Flags().StringVar(&platforms, "platforms", "", "such as linux/amd64,linux/arm64 (default: this machine's)")
	var against string
	releaseVerify := verb("release-verify", "Check the sums of dist/ offline, and compare it with another one", func(context.Context) error { return app.ReleaseVerify(against) })
	releaseVerify.Flags().StringVar(&against, "against", "", "dist folder of another checkout, which has to hold the same release")

	var force bool
	clean := verb("clean", "Remove what the tooling made", func(ctx context.Context) error { return app.Clean(ctx, force) })
	clean.Flags().BoolVar(&force, "force", false, "even commits that are not exported")

	// The first process of a cluster's node; not for people.
	cmd.AddCommand(&cobra.Command{
		Use: cluster.InitVerb, Hidden: true, Args: cobra.ExactArgs(1),
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE:              func(c *cobra.Command, args []string) error { return cluster.NodeInit(c.Context(), args[0]) },
	})
	return cmd
}
