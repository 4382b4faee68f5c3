package central

import (
	"context"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/apiservertest"
	"capacityv2.internal/test-integration/clustertest"
)

// free is what the node of these tests has at first.
const free = 100 << 30

// chain is a node with a driver, and the way of its provisioner to the API server.
type chain struct {
	*clustertest.Cluster
	driver *driver
	*proxy
	server      *rest.Config
	provisioner *apiservertest.Process
}

// startChain starts a patched provisioner for one node, whose capacity is published.
func startChain(t *testing.T, options clustertest.Options) *chain {
	t.Helper()
	c := &chain{Cluster: clustertest.StartWith(ktesting.Init(t), options), driver: newDriver()}
	c.driver.createNode(c.Cluster, "node-1")
	c.driver.free["node-1"] = free
	createClass(c.Cluster)
	c.proxy, c.server = startProxy(c.Cluster)
	c.start()
	c.WaitForCapacity(free)
	c.WaitForScheduler()
	return c
}

func (c *chain) start() {
	c.Helper()
	c.provisioner = c.driver.startProvisioner(c.Cluster, variant{provisioner: "CSI_PROVISIONER", qps: 20}, c.server)
}

func (c *chain) create(pod, size string) {
	c.Helper()
	c.CreatePod(clustertest.Pod{Name: pod, Class: class, Sizes: []string{size}})
}

func (c *chain) expectNoFailures() {
	c.Helper()
	if _, failed, _ := c.driver.counts(); failed > 0 {
		c.Errorf("%d volumes were asked for where there was no room, want none", failed)
	}
}

// TestBeforeConfirmation: a volume was created, and the report that confirms it is not written yet. It
// comes later, or the provisioner is killed and the next one writes it. Until then, the room is
// the volume's.
func TestBeforeConfirmation(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(map[bool]string{false: "late", true: "killed"}[killed], func(t *testing.T) {
			clustertest.ForEachPolicy(t, func(t *testing.T, options clustertest.Options) {
				c := startChain(t, options)
				c.holding.Store(true)
				c.create("first", "60Gi")
				c.ExpectNode("first", "node-1")
				goOn := c.wait(c.Cluster)
				c.create("second", "60Gi")
				c.ExpectReason("second", 1, clustertest.Reserved)
				c.Stays(func(context.Context) error { return c.HasReason("second", 1, clustertest.Reserved) })

				c.holding.Store(false)
				if killed {
					c.provisioner.Kill()
					c.start()
				} else {
					close(goOn)
				}
				c.WaitForCapacity(free - 60<<30)
				c.ExpectNoRoom("second", 1)
				c.expectNoFailures()
			})
		})
	}
}

// TestOldNumbers: the provisioner has asked the driver for its capacity, and a volume is created before the
// answer is written. What is written does not have that volume, and does not confirm it.
func TestOldNumbers(t *testing.T) {
	t.Parallel()
	// With Object, nobody else gets the node in between.
	c := startChain(t, clustertest.Options{Policy: config.InFlightCapacityReservation})
	c.holding.Store(true)
	c.create("first", "30Gi")
	c.ExpectNode("first", "node-1")
	goOn := c.wait(c.Cluster)
	c.create("second", "30Gi")
	c.ExpectNode("second", "node-1")
	close(goOn)
	c.WaitForCapacity(free - 30<<30)
	c.create("third", "60Gi")
	c.ExpectReason("third", 1, clustertest.Reserved)
	c.Stays(func(context.Context) error { return c.HasReason("third", 1, clustertest.Reserved) })

	goOn = c.wait(c.Cluster)
	c.holding.Store(false)
	close(goOn)
	c.WaitForCapacity(free - 60<<30)
	c.ExpectNoRoom("third", 1)
	c.expectNoFailures()
}
