// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/build"
	"capacityv2.internal/scripts/cluster/local"
	"capacityv2.internal/scripts/cluster/machine"
	"capacityv2.internal/scripts/cluster/node"
	"capacityv2.internal/scripts/ground/cli"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch"
)

func upVerb() *cobra.Command {
	var o local.Options
	var driver string
	c := cli.Verb("up", "Apply, build the custom release, and bring up a local cluster with the features on", `
It assembles the source, applies each series, builds the components and what a node
needs, and runs upstream's hack/local-up-cluster.sh, with the gates of feature-gates.yaml.
A cluster that runs the same already is left alone. At the end it prints the lines to paste.

`+local.Environment(),
		"  capacityv2 up --nodes 3 --driver reference", func(ctx context.Context, ws workspace.Workspace) error {
			_, err := Up(ctx, ws, o, driver, Extra{})
			return err
		})
	Flags(c, &o)
	c.Flags().StringVar(&driver, "driver", "", "`reference`: install the reference CSI driver with the patched external-provisioner")
	return c
}

// Flags adds those of verbs that bring up a cluster.
func Flags(c *cobra.Command, o *local.Options) {
	c.Flags().StringVar(&o.Nodes, "nodes", "", "number of nodes, `1..9` (default: what the verb needs, or what runs already)")
	c.Flags().StringVar(&o.Mode, "cluster-mode", "", "`full|control-plane` (default: full where a kubelet can run)")
}

// Extra is what a verb needs of a cluster beside the components and the driver.
type Extra struct {
	// Tasks come before the cluster starts.
	Tasks []run.Task
	// Images come onto every node. Their programs are built then. Nil: none.
	Images func(context.Context, *run.Step) ([]node.Image, error)
}

// buildDisk is the GiB that Go's cache of all components needs.
const buildDisk = 8

// Up applies the series, builds the components, and brings up a local cluster, with a
// driver unless that is "". Gates that are not chosen are those of feature-gates.yaml.
// Who gets the ID of a cluster has to end it, even beside an error; otherwise it is somebody else's.
func Up(ctx context.Context, ws workspace.Workspace, o local.Options, driver string, extra Extra) (started string, err error) {
	if err := checkDriver(driver); err != nil {
		return "", err
	}
	if o.Gates == "" {
		list, err := ws.Gates()
		if err != nil {
			return "", err
		}
		o.Gates = list.Enabled()
	}
	plan := local.NewPlan(ws, o)
	project := workspace.Kubernetes
	if driver != "" {
		project = "" // all
	}
	var images []node.Image
	// What would fail at the end is said before the long build.
	tasks := append([]run.Task{{Name: "what the cluster needs of the machine", Do: func(ctx context.Context, s *run.Step) error {
		if err := plan.Prepare(ctx, s); err != nil {
			return err
		}
		if err := requireBuildDisk(ctx, ws, plan.Components(), buildDisk); err != nil || driver == "" {
			return err
		}
		err := checkDriverMode(plan.Mode)
		if err == nil {
			images, err = driverImages(ctx, ws, plan.Folder(), s)
		}
		return err
	}}}, patch.Trees(ws, project)...)
	tasks = append(tasks, run.Task{Name: "build the components", Do: func(ctx context.Context, s *run.Step) error {
		return build.Components(ws, plan.Components()...).Do(ctx, s)
	}})
	if driver != "" {
		tasks = append(tasks, buildDriver(ws))
	}
	tasks = slices.Concat(tasks, extra.Tasks, []run.Task{{Name: "tools of the cluster", Do: plan.Tools}})
	tasks = append(tasks, run.Task{Name: "start the cluster, and wait until it serves", Do: func(ctx context.Context, s *run.Step) error {
		if extra.Images != nil {
			more, err := extra.Images(ctx, s)
			if err != nil {
				return err
			}
			images = append(images, more...)
		}
		if err := plan.Up(ctx, images, s); err != nil {
			return err
		}
		return local.Show(ws, s.AtEnd)
	}})
	if driver != "" {
		tasks = append(tasks, run.Task{Name: "install the driver", Do: func(ctx context.Context, s *run.Step) error {
			s.AtEnd("The reference driver runs. Try also:\n" +
				"  kubectl apply -f docs/examples/reference.yaml\n" +
				"  kubectl wait --for=condition=Ready --timeout=3m pod/writer\n" +
				"  kubectl get csistoragecapacities --all-namespaces --output wide\n" +
				"docs/tutorials/first-cluster.md says how to move the volume to another node.\n")
			return installDriver(ctx, ws, s)
		}})
	}
	err = ws.Run(ctx, "up", tasks...)
	return plan.Started, err
}

// requireBuildDisk requires gib GiB on the disk of Go's build cache. Once all programs were built, a change needs
// little, unless the cache was emptied.
func requireBuildDisk(ctx context.Context, ws workspace.Workspace, programs []string, gib uint64) error {
	isMissing := func(program string) bool { return !machine.Exists(filepath.Join(ws.Components(), program)) }
	if !slices.ContainsFunc(programs, isMissing) {
		return nil
	}
	cache, err := toolchain.GoValue(ctx, "GOCACHE")
	if err != nil {
		return err
	}
	return toolchain.RequireDisk(cache, gib)
}

// Nodes is what the tests and the demonstration need: a node to drain, one without room, and one that gets room.
const Nodes = 3

// StockProvisionerImage is external-provisioner without the series, on the nodes of [OnOwn].
const StockProvisionerImage = "capacityv2.internal/csi-provisioner:stock"

// OnOwn does something on a cluster of its own that has the reference driver and the images of both provisioners, after
// further things were built. The cluster is ended before it is left, whatever happens.
func OnOwn(ctx context.Context, ws workspace.Workspace, verb string, further []run.Task, do func(local.Status) error) (err error) {
	other := run.Refuse("a local cluster runs from "+ws.Cluster(),
		"no running cluster, because make "+verb+" starts its own and replaces its scheduler", "make down, then make "+verb)
	if before, err := local.StatusOf(ws); err != nil {
		return err
	} else if before.Alive {
		return other
	}
	started, err := Up(ctx, ws, local.Options{DefaultNodes: Nodes}, ReferenceDriver, Extra{
		Tasks: append([]run.Task{build.StockProvisioner(ws)}, further...),
		Images: func(context.Context, *run.Step) ([]node.Image, error) {
			return []node.Image{ProgramImage(StockProvisionerImage, build.ProvisionerProgram, ws.StockComponents())}, nil
		},
	})
	if started != "" {
		defer func() { err = errors.Join(err, End(context.WithoutCancel(ctx), ws, started)) }()
	}
	if err != nil {
		return err
	}
	if started == "" { // by somebody else, meanwhile
		return other
	}
	st, err := local.StatusOf(ws)
	if err != nil {
		return err
	}
	return do(st)
}
