package central

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/apiservertest"
	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/history"
	"capacityv2.internal/test-integration/modeldriver"
)

func TestMain(m *testing.M) { apiservertest.Main(m) }

const (
	class = "central"
	// nodeLabel has the name of a node, and is the topology of the driver.
	nodeLabel = "topology.central.example.com/node"
	nodes     = 100
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
	unconfirmed bool                             // the patched provisioner does not confirm
}

var variants = []variant{
	{provisioner: "STOCK_CSI_PROVISIONER", qps: 1},
	{policy: config.InFlightCapacityReservation, provisioner: "STOCK_CSI_PROVISIONER", qps: 1},
	{policy: config.InFlightCapacityReservation, provisioner: "CSI_PROVISIONER", qps: 1},
	{provisioner: "STOCK_CSI_PROVISIONER", qps: 20},
	{policy: config.InFlightCapacityReservation, provisioner: "STOCK_CSI_PROVISIONER", qps: 20},
	{policy: config.InFlightCapacityReservation, provisioner: "CSI_PROVISIONER", qps: 20},
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
	d := createDriver(c, nodes, places*volumeSize<<30, class)
	startProvisioner(c, d, v, c.RESTConfig())
	record := startRecord(c)
	record.waitForAll(c)
	record.restart()
	before := d.Calls()

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
	created := d.Created()
	r.failed, r.calls = d.Failed(), float64(d.Calls()-before)/float64(max(1, len(created)))
	r.writes, r.confirmed = record.evaluate(created)
	rules := history.Rules{Refusals: math.MaxInt}
	if v.policy != "" && v.provisioner == "CSI_PROVISIONER" {
		rules.Refusals = 0
	}
	history.Expect(b, "central", d.History.Operations(), rules)
	return r
}

// createDriver creates nodes with so many bytes each, a driver on them, and its classes.
func createDriver(c *clustertest.Cluster, nodes int, bytes int64, classes ...string) *modeldriver.Driver {
	c.Helper()
	config := modeldriver.Config{Name: "central.example.com", Classes: classes, History: &history.Recorder{}}
	for i := range nodes {
		config.Segments = append(config.Segments, modeldriver.Segment{Labels: map[string]string{nodeLabel: fmt.Sprintf("node-%d", i+1)}, Pools: []int64{bytes}})
	}
	d := c.Install(config)
	for _, segment := range d.Segments {
		c.CreateNodeOf(d, segment.Name(), segment, nil)
	}
	return d
}

// startProvisioner starts the driver, and the provisioner beside it, which connects to server.
func startProvisioner(
	c *clustertest.Cluster, d *modeldriver.Driver, v variant, server *rest.Config, more ...string,
) *apiservertest.Process {
	c.Helper()
	program := os.Getenv(v.provisioner)
	if program == "" {
		c.Fatalf("%s is not set; make test, make bench SUITE=chain and SUITE=provisioner set it", v.provisioner)
	}
	flags := []string{
		"--kubeconfig=" + apiservertest.Kubeconfig(c.TContext.TContext, server, ""), "--timeout=1m",
		fmt.Sprintf("--kube-api-capacity-qps=%d", v.qps), fmt.Sprintf("--kube-api-capacity-burst=%d", v.qps),
	}
	if v.provisioner == "CSI_PROVISIONER" && !v.unconfirmed {
		flags = append(flags, "--capacity-confirmation")
	}
	return c.StartProvisioner(d, "", program, append(flags, more...)...)
}

// expectNoRefusals checks that no volume was sent where there is no room.
func expectNoRefusals(t *testing.T, d *modeldriver.Driver) {
	t.Helper()
	history.Expect(t, "driver", d.History.Operations(), history.Rules{})
}

// median returns that of durations in seconds.
func median(all []time.Duration) string {
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", slices.Sorted(slices.Values(all))[len(all)/2].Seconds())
}
