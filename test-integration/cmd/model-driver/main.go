// Command model-driver runs the model of a CSI driver with pools against a
// cluster, until it is interrupted: see package modeldriver.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"capacityv2.internal/test-integration/modeldriver"
	"capacityv2.internal/test-integration/nodeplugin"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var kubeconfig string
	var pools []string
	var kubelets string
	config := modeldriver.Config{}
	cmd := &cobra.Command{
		Use:   "model-driver --pools NODE=SIZE,SIZE…",
		Short: "Play a CSI driver with pools: publish capacity, create volumes, count those without room",
		Long: `Play a CSI driver with pools, in the part of external-provisioner: publish a
CSIStorageCapacity object for each node, create a volume for each claim that the
scheduler has sent there, and send pods back for which there is no room. When it is
interrupted, it says how many those were, and removes its driver, class and objects.`,
		Example: `  model-driver --name story-2.csi.example.com --class story-2 --pools node1=100Gi \
    --refresh-delay 2s --host-path /tmp`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if config.Segments, err = parsePools(pools); err != nil {
				return err
			}
			if kubelets != "" && slices.Contains(nodes(config.Segments), "") {
				return errors.New("--pools *=… with --kubelets; expected the nodes whose kubelets to serve, such as --pools node1=100Gi")
			}
			return run(cmd.Context(), kubeconfig, kubelets, config, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "the cluster (default: that of KUBECONFIG)")
	flags.StringVar(&config.Name, "name", "model.csi.example.com", "name of the CSIDriver")
	flags.StringSliceVar(&config.Classes, "class", []string{"model"}, "names of its storage classes")
	flags.StringArrayVar(&pools, "pools", nil, "a node and the sizes of its pools, such as node1=100Gi,80Gi; may be repeated; * is storage that all nodes reach")
	flags.DurationVar(&config.RefreshDelay, "refresh-delay", 2*time.Second, "time between a change and its publication")
	flags.BoolVar(&config.TotalOnly, "total-only", false, "publish the sum of the pools, and not the pools")
	flags.BoolVar(&config.Thin, "thin", false, "volumes take no space, so the numbers never change")
	flags.BoolVar(&config.WorstFit, "worst-fit", false, "put volumes in the largest pool, not in the smallest one in which they fit")
	flags.Float64Var(&config.WritesPerSecond, "writes-per-second", 0, "limit of the writes of capacity objects; external-provisioner has 1 (default: none)")
	flags.BoolVar(&config.Confirming, "confirming", false, "say in an annotation which volumes the numbers include")
	flags.StringVar(&config.HostPath, "host-path", "", "make volumes of this folder of the nodes, so that pods run")
	flags.BoolVar(&config.Rebuilding, "rebuilding", false, "rebuild volumes on the nodes of their pods, see docs/volume-rebuilding-contract.md; not with --host-path")
	flags.IntVar(&config.Copies, "copies", 1, "number of nodes with a copy of each volume, with --rebuilding")
	flags.StringVar(&kubelets, "kubelets", "", "folder of a cluster that make up has started: serve its kubelets, so that pods run; not with --host-path")
	return cmd
}

// allNodes stands for the node in --pools.
const allNodes = "*"

// parsePools reads values of --pools.
func parsePools(values []string) ([]modeldriver.Segment, error) {
	if len(values) == 0 {
		return nil, errors.New("there are no pools; expected, for example: --pools node1=100Gi,80Gi")
	}
	var segments []modeldriver.Segment
	for _, value := range values {
		node, sizes, ok := strings.Cut(value, "=")
		if !ok || node == "" {
			return nil, fmt.Errorf("--pools %s: no node; expected, for example: --pools node1=100Gi,80Gi", value)
		}
		segment := modeldriver.Segment{Labels: map[string]string{}}
		if node != allNodes {
			segment.Labels[corev1.LabelHostname] = node
		}
		for size := range strings.SplitSeq(sizes, ",") {
			quantity, err := resource.ParseQuantity(size)
			if err != nil {
				return nil, fmt.Errorf("--pools %s: %q is no size; expected a quantity such as 100Gi", value, size)
			}
			segment.Pools = append(segment.Pools, quantity.Value())
		}
		segments = append(segments, segment)
	}
	return segments, nil
}

// nodes returns the names of the nodes.
func nodes(segments []modeldriver.Segment) []string {
	var names []string
	for _, segment := range segments {
		names = append(names, segment.Labels[corev1.LabelHostname])
	}
	return names
}

func run(ctx context.Context, kubeconfig, kubelets string, config modeldriver.Config, out io.Writer) (err error) {
	if kubeconfig == "" {
		return errors.New("no cluster; expected --kubeconfig or KUBECONFIG, which make up prints")
	}
	restConfig, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return err
	}
	// The kubelets have to know the driver before there are volumes.
	var started atomic.Pointer[modeldriver.Driver]
	if kubelets != "" {
		has := func(volume, node string) bool { return started.Load() != nil && started.Load().Has(volume, node) }
		stop, startErr := nodeplugin.StartAll(config.Name, kubelets, has, nodes(config.Segments)...)
		if startErr != nil {
			return startErr
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	driver, err := modeldriver.Start(ctx, client, config)
	if err != nil {
		return fmt.Errorf("%w; objects of a run that was killed have to be deleted first", err)
	}
	started.Store(driver)
	fmt.Fprintf(out, "driver %s runs for the classes %s; interrupt it to end it\n", config.Name, strings.Join(config.Classes, ", "))
	<-ctx.Done()
	driver.Wait()
	fmt.Fprintf(out, "%d volumes were created, %d were asked for where there was no room\n", driver.Provisioned(), driver.Failed())
	return modeldriver.Remove(context.WithoutCancel(ctx), client, config)
}
