// SPDX-License-Identifier: Apache-2.0

package publishing

import (
	"context"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// free is what the node of these tests has at first.
const free = 100 << 30

// chain is a node with a driver, and the way of its provisioner to the API server.
type chain struct {
	*clustertest.Cluster
	driver *modeldriver.Driver
	// answers is where the answers of GetCapacity pass.
	answers *point
	*proxy
	way         *rest.Config
	provisioner *clustertest.Process
}

// startChain starts a patched provisioner for one node, whose capacity is published.
func startChain(t *testing.T, options clustertest.Options) *chain {
	t.Helper()
	c := &chain{Cluster: clustertest.StartWith(ktesting.Init(t), options), answers: newPoint()}
	c.driver = createDriver(c.Cluster, 1, free, class)
	c.driver.BeforeAnswer = c.answers.pass
	c.proxy, c.way = startProxy(c.Cluster)
	c.start()
	c.WaitForCapacity(free)
	c.WaitForScheduler()
	return c
}

func (c *chain) start() {
	c.Helper()
	// A poll would come to a point in place of what a volume causes.
	c.provisioner = startProvisioner(c.Cluster, c.driver, variant{qps: 20}, c.way, "--capacity-poll-interval=1h")
}

func (c *chain) create(pod, size string) {
	c.Helper()
	c.CreatePod(clustertest.Pod{Name: pod, Class: class, Sizes: []string{size}})
}

// TestBeforeConfirmation: a volume was created, and the report that confirms it is not written yet. It
// comes later, or the provisioner is killed and the next one writes it. Until then, the room is
// the volume's.
func TestBeforeConfirmation(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(map[bool]string{false: "late", true: "killed"}[killed], func(t *testing.T) {
			clustertest.ForAnyPolicy(t, func(t *testing.T, options clustertest.Options) {
				c := startChain(t, options)
				c.writes.holding.Store(true)
				c.create("first", "60Gi")
				c.ExpectNode("first", "node-1")
				goOn := c.writes.wait(c.Cluster)
				c.create("second", "60Gi")
				c.ExpectReason("second", 1, clustertest.Reserved)
				c.Stays(func(context.Context) error { return c.HasReason("second", 1, clustertest.Reserved) })

				c.writes.holding.Store(false)
				if killed {
					c.provisioner.Kill()
					c.start()
				} else {
					close(goOn)
				}
				c.WaitForCapacity(free - 60<<30)
				c.ExpectNoRoom("second", 1)
				c.ExpectNoFailures(c.driver)
			})
		})
	}
}

// TestOldNumbers: a volume is created while the capacity is known and not written yet: the driver has not answered, or
// the answer is about to be written. What is written does not have that volume, and does not confirm it.
func TestOldNumbers(t *testing.T) {
	for name, pointOf := range map[string]func(*chain) *point{
		"asked":   func(c *chain) *point { return c.answers },
		"written": func(c *chain) *point { return c.writes },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// With Object, nobody else gets the node in between.
			c := startChain(t, clustertest.Options{Policy: config.InFlightCapacityReservation})
			point := pointOf(c)
			point.holding.Store(true)
			c.create("first", "30Gi")
			c.ExpectNode("first", "node-1")
			goOn := point.wait(c.Cluster)
			c.create("second", "30Gi")
			c.ExpectNode("second", "node-1")
			close(goOn)
			c.WaitForCapacity(free - 30<<30)
			c.create("third", "60Gi")
			c.ExpectReason("third", 1, clustertest.Reserved)
			c.Stays(func(context.Context) error { return c.HasReason("third", 1, clustertest.Reserved) })

			goOn = point.wait(c.Cluster)
			point.holding.Store(false)
			close(goOn)
			c.WaitForCapacity(free - 60<<30)
			c.ExpectNoRoom("third", 1)
			c.ExpectNoFailures(c.driver)
		})
	}
}
