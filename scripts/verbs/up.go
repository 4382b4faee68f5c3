package verbs

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/cluster"
	"capacityv2.internal/scripts/machine"
	"capacityv2.internal/scripts/release"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/toolchain"
	"capacityv2.internal/scripts/workspace"
)

func upCommand(a *App) *cobra.Command {
	var options cluster.Options
	var driver string
	c := verb("up", "Apply, build the custom release, and bring up a local cluster with the features on", `
It assembles the source, applies each series, builds the components and what a node
needs, and runs upstream's hack/local-up-cluster.sh, with the gates of feature-gates.yaml.
A cluster that runs the same already is left alone. At the end it prints the lines to paste.

`+cluster.Environment(),
		"  capacityv2 up --nodes 3 --driver reference", func(ctx context.Context) error {
			_, err := a.Up(ctx, &options, driver)
			return err
		})
	clusterFlags(c, &options)
	c.Flags().StringVar(&driver, "driver", "", "reference: install the reference CSI driver with the patched external-provisioner")
	return c
}

// clusterFlags are those of verbs that bring up a cluster.
func clusterFlags(c *cobra.Command, o *cluster.Options) {
	c.Flags().StringVar(&o.Nodes, "nodes", "", "number of nodes, 1 to 9 (default: what the verb needs, or what runs already)")
	c.Flags().StringVar(&o.Mode, "cluster-mode", "", "full or control-plane (default: full where a kubelet can run)")
}

// Up applies the series, builds the components, and brings up a local cluster, with a
// driver unless that is "". Gates that are not chosen are those of feature-gates.yaml.
// What further does before the cluster starts may add images to the options. Who gets
// the ID of a cluster has to end it, even beside an error; otherwise it is somebody else's.
func (a *App) Up(ctx context.Context, options *cluster.Options, driver string, further ...run.Task) (started string, err error) {
	if err := checkDriver(driver); err != nil {
		return "", err
	}
	if options.Gates == "" {
		list, err := a.WS.Gates()
		if err != nil {
			return "", err
		}
		options.Gates = list.Enabled()
	}
	plan := cluster.NewPlan(a.WS, options)
	// What would fail at the end is said before the long build.
	tasks := []run.Task{{Name: "what the cluster needs of the machine", Do: func(ctx context.Context, s *run.Step) error {
		if err := plan.Prepare(ctx, s); err != nil {
			return err
		}
		if err := a.requireBuildDisk(ctx, plan.Components(), buildDisk); err != nil || driver == "" {
			return err
		}
		if err := checkDriverMode(plan.Mode); err != nil {
			return err
		}
		images, err := a.driverImages(ctx, options.Components, s)
		options.Images = append(options.Images, images...)
		return err
	}}}
	trees := a.apply()
	if driver == "" { // Kubernetes alone
		trees = []run.Task{{Name: "check the machine", Do: a.checkMachine},
			a.each("base tree", workspace.Kubernetes, a.ensureBase), a.each("apply the series", workspace.Kubernetes, a.ensureSeries)}
	}
	tasks = slices.Concat(tasks, trees, []run.Task{{Name: "build the components", Do: func(ctx context.Context, s *run.Step) error {
		return release.BuildComponents(ctx, a.WS, workspace.Kubernetes, s.Log, a.WS.Components(), plan.Components()...)
	}}})
	if driver != "" {
		tasks = append(tasks, run.Task{Name: "build the driver and its provisioner", Do: a.buildDriver})
	}
	tasks = append(tasks, further...)
	tasks = append(tasks, run.Task{Name: "tools of the cluster", Do: plan.Tools}, run.Task{Name: "start the cluster, and wait until it serves", Do: func(ctx context.Context, s *run.Step) error {
		if err := plan.Up(ctx, s); err != nil {
			return err
		}
		return cluster.Show(a.WS, s.AtEnd)
	}})
	if driver != "" {
		tasks = append(tasks, run.Task{Name: "install the driver", Do: func(ctx context.Context, s *run.Step) error {
			s.AtEnd("The reference driver runs. Try also:\n" +
				"  kubectl apply -f docs/examples/reference.yaml\n" +
				"  kubectl wait --for=condition=Ready --timeout=3m pod/writer\n" +
				"  kubectl get csistoragecapacities --all-namespaces --output wide\n" +
				"README.md says how to move the volume to another node.\n")
			return a.installDriver(ctx, s)
		}})
	}
	err = a.do(ctx, "up", tasks...)
	return plan.Started, err
}

// requireBuildDisk requires gib GiB on the disk of Go's build cache. Once all programs were built, a change needs
// little, unless the cache was emptied.
func (a *App) requireBuildDisk(ctx context.Context, programs []string, gib uint64) error {
	isMissing := func(program string) bool { return !machine.Exists(filepath.Join(a.WS.Components(), program)) }
	if !slices.ContainsFunc(programs, isMissing) {
		return nil
	}
	cache, err := toolchain.GoValue(ctx, "GOCACHE")
	if err != nil {
		return err
	}
	return toolchain.RequireDisk(cache, gib)
}
