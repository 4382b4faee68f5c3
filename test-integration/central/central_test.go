package central

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/apiservertest"
	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/history"
)

func TestMain(m *testing.M) { apiservertest.Main(m) }

const (
	class       = "central"
	topologyKey = "topology.central.example.com/node"
	nodes       = 100
	// places is how many volumes fit on a node, volumeSize what each takes, in GiB.
	places, volumeSize = 2, 10
	// limit is how long pods may take to get nodes. It is longer than the timeout of
	// reservations.
	limit = 5 * time.Minute
)

// variant is a scheduler beside a provisioner.
type variant struct {
	policy      config.CapacityReservationPolicy // "": the feature gate is off
	provisioner string                           // the variable that names the program
	qps         int                              // how often it may write capacity in a second
}

var variants = []variant{
	{"", "STOCK_CSI_PROVISIONER", 1},
	{config.InFlightCapacityReservation, "STOCK_CSI_PROVISIONER", 1},
	{config.InFlightCapacityReservation, "CSI_PROVISIONER", 1},
	{"", "STOCK_CSI_PROVISIONER", 20},
	{config.InFlightCapacityReservation, "STOCK_CSI_PROVISIONER", 20},
	{config.InFlightCapacityReservation, "CSI_PROVISIONER", 20},
}

func (v variant) String() string {
	scheduler, provisioner := string(v.policy), "stock"
	if v.policy == "" {
		scheduler = "gate off"
	}
	if v.provisioner == "CSI_PROVISIONER" {
		provisioner = "patched"
	}
	return fmt.Sprintf("%s | %s | %d", scheduler, provisioner, v.qps)
}

// BenchmarkCentral fills all nodes at once.
func BenchmarkCentral(b *testing.B) {
	table := strings.Builder{}
	for _, v := range variants {
		b.Run(v.String(), func(b *testing.B) {
			r := run(b, v)
			b.ReportMetric(float64(r.failed), "failed-provisions")
			b.ReportMetric(r.decided.Seconds(), "decided-s")
			fmt.Fprintf(&table, "| %s | %d | %.1f | %d | %.1f | %.1f | %s |\n", v, r.failed, r.decided.Seconds(), r.left, r.writes, r.calls, r.confirmed)
		})
	}
	if file := os.Getenv("CENTRAL_REPORT"); file != "" {
		if err := os.WriteFile(file, []byte(head+table.String()), 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

var head = fmt.Sprintf(`
## One provisioner for %d nodes

A driver with one controller, on a control plane without kubelets. Each node has room for %d volumes,
and there are as many pods as places. *limit* is `+"`--kube-api-capacity-qps`"+`: how often the provisioner may
write capacity in a second. It publishes all nodes before the first pod comes.

| scheduler | provisioner | limit | failed | decided | left | writes | calls | confirmed |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
`, nodes, places)

// result is what the table shows, as in the one above it.
type result struct {
	failed, left  int
	decided       time.Duration
	writes, calls float64
	confirmed     string
}

func run(b *testing.B, v variant) result {
	c := clustertest.StartWith(ktesting.Init(b), clustertest.Options{GateOff: v.policy == "", Policy: v.policy})
	d := newDriver()
	for i := range nodes {
		d.createNode(c, fmt.Sprintf("node-%d", i+1), places*volumeSize<<30)
	}
	createClass(c)
	d.startProvisioner(c, v, c.RESTConfig())
	record := startRecord(c)
	record.waitForAll(c)
	record.restart()
	_, _, before := d.counts()

	start := time.Now()
	for i := range nodes * places {
		c.CreatePod(clustertest.Pod{Name: fmt.Sprintf("pod-%d", i), Class: class, Sizes: []string{fmt.Sprintf("%dGi", volumeSize)}})
	}
	placed := 0
	err := wait.PollUntilContextTimeout(c, 100*time.Millisecond, limit, true, func(context.Context) (bool, error) {
		pods, err := c.Placed(c) // not with the context that is about to end: that would be an error
		placed = len(pods)
		return placed == nodes*places, err
	})
	if err != nil && !wait.Interrupted(err) {
		c.Fatalf("list pods: %v", err)
	}
	r := result{decided: time.Since(start), left: nodes*places - placed}
	if v.provisioner == "CSI_PROVISIONER" {
		record.waitForConfirmations(c, placed)
	}
	volumes, failed, calls := d.counts()
	r.failed, r.calls = failed, float64(calls-before)/float64(max(1, volumes))
	r.writes, r.confirmed = record.evaluate(d, volumes)
	rules := history.Rules{Refusals: math.MaxInt}
	if v.policy != "" && v.provisioner == "CSI_PROVISIONER" {
		rules.Refusals = 0
	}
	history.Expect(b, "central", d.history.Operations(), rules)
	return r
}

// createNode creates a node as a kubelet with the driver does, with so many bytes.
func (d *driver) createNode(c *clustertest.Cluster, name string, bytes int64) {
	c.Helper()
	c.CreateNode(name, map[string]string{topologyKey: name})
	_, err := c.Client().StorageV1().CSINodes().Create(c, &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: driverName, NodeID: name, TopologyKeys: []string{topologyKey}}}},
	}, metav1.CreateOptions{})
	c.ExpectNoError(err, "create CSINode")
	d.free[name] = bytes
	d.history.Begin(history.Operation{Node: name, Kind: history.Start, Pools: map[string]int64{onlyPool: bytes}})(history.OK, "")
}

func createClass(c *clustertest.Cluster) {
	c.Helper()
	_, err := c.Client().StorageV1().CSIDrivers().Create(c, &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: driverName}, Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true), AttachRequired: new(false)},
	}, metav1.CreateOptions{})
	c.ExpectNoError(err, "create CSIDriver")
	_, err = c.Client().StorageV1().StorageClasses().Create(c, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: driverName, VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	}, metav1.CreateOptions{})
	c.ExpectNoError(err, "create the class")
	_, err = c.Client().CoreV1().Namespaces().Create(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: class}}, metav1.CreateOptions{})
	c.ExpectNoError(err, "create the namespace of the objects")
}

// startProvisioner starts the driver, and the provisioner beside it.
func (d *driver) startProvisioner(c *clustertest.Cluster, v variant, server *rest.Config, more ...string) *apiservertest.Process {
	c.Helper()
	program := os.Getenv(v.provisioner)
	if program == "" {
		c.Fatalf("%s is not set; make test and make bench SUITE=chain set it", v.provisioner)
	}
	dir, err := os.MkdirTemp("", "central") // the path of c.TempDir is too long for a socket
	c.ExpectNoError(err, "folder for the socket")
	c.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "csi.sock")
	d.start(c, socket)
	args := []string{
		"--csi-address=" + socket, "--kubeconfig=" + apiservertest.Kubeconfig(c.TContext.TContext, server, ""), "--enable-capacity", "--capacity-ownerref-level=-1",
		fmt.Sprintf("--kube-api-capacity-qps=%d", v.qps), fmt.Sprintf("--kube-api-capacity-burst=%d", v.qps),
		"--kube-api-qps=100", "--kube-api-burst=200", "--worker-threads=20", "--strict-topology", "--timeout=1m",
	}
	if v.provisioner == "CSI_PROVISIONER" {
		args = append(args, "--capacity-confirmation")
	}
	return apiservertest.StartProcess(c.TContext.TContext, program, []string{"NAMESPACE=" + class}, append(args, more...)...)
}

// median returns that of durations in seconds.
func median(all []time.Duration) string {
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", slices.Sorted(slices.Values(all))[len(all)/2].Seconds())
}
