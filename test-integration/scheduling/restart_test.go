// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// restarts are the ways in which a scheduler ends and another one goes on.
var restarts = map[string]func(*clustertest.Cluster){
	"stopped": func(c *clustertest.Cluster) {
		c.StopScheduler()
		c.StartScheduler()
	},
	"killed": func(c *clustertest.Cluster) {
		c.KillScheduler()
		c.StartScheduler()
	},
	"taken over": func(c *clustertest.Cluster) {
		c.StartStandby()
		c.TakeOver()
	},
	// The second one waits for the lease of the first one when the third one comes.
	"killed and taken over": func(c *clustertest.Cluster) {
		c.KillScheduler()
		c.StartScheduler()
		c.StartStandby()
		c.TakeOver()
	},
}

// TestRestartInFlight: a scheduler ends while a volume is not in the published
// numbers. The next one finds that out from the claim.
func TestRestartInFlight(t *testing.T) {
	for name, restart := range restarts {
		t.Run(name, func(t *testing.T) {
			clustertest.ForAnyPolicy(t, func(t *testing.T, options clustertest.Options) {
				options.Lease = strings.HasSuffix(name, "taken over")
				c := clustertest.StartWith(ktesting.Init(t), options)
				c.CreateNodes(1)
				driver := c.StartDriver(unpublished([]int64{100}))
				c.CreatePod(clustertest.Pod{Name: "first", Class: class, Sizes: []string{"60Gi"}})
				c.ExpectNode("first", "node-1")
				restart(c)
				c.CreatePod(clustertest.Pod{Name: "second", Class: class, Sizes: []string{"60Gi"}})
				c.ExpectReason("second", 1, clustertest.Reserved)
				driver.Publish()
				c.ExpectNoRoom("second", 1)
				c.ExpectNoFailures(driver)
			})
		})
	}
}

// TestKilledBeforeAnswer: a scheduler is killed when the server has written the selected node of a
// claim and the scheduler does not know that yet. The volume takes its time. The next scheduler keeps
// the room for it.
func TestKilledBeforeAnswer(t *testing.T) { clustertest.ForAnyPolicy(t, testKilledBeforeAnswer) }

func testKilledBeforeAnswer(t *testing.T, options clustertest.Options) {
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(1)
	gate := newGate()
	gate.close("first-0")
	config := unpublished([]int64{100})
	config.BeforeCreate, config.Confirming = gate.beforeCreate, true
	driver := c.StartDriver(config)
	c.WaitForScheduler()
	c.HoldAnswers("persistentvolumeclaims")
	c.CreatePod(clustertest.Pod{Name: "first", Class: class, Sizes: []string{"60Gi"}})
	c.WaitForHeldAnswer()
	c.KillScheduler()
	if node := c.Claim("first-0").Annotations[selectedNode]; node != "node-1" {
		t.Fatalf("the selected node is %q, want node-1: the write was carried out", node)
	}
	c.StartScheduler()
	c.CreatePod(clustertest.Pod{Name: "second", Class: class, Sizes: []string{"60Gi"}})
	c.ExpectReason("second", 1, clustertest.Reserved)
	gate.open("first-0")
	c.ExpectNode("first", "node-1")
	driver.Publish()
	c.ExpectNoRoom("second", 1)
	c.ExpectNoFailures(driver)
}

// TestKilledInTheMiddle: the scheduler is killed when a third of the pods have their
// volumes. The driver works like external-provisioner and confirms. All pods get
// their nodes soon, and none of them one without room.
func TestKilledInTheMiddle(t *testing.T) { clustertest.ForAnyPolicy(t, testKilledInTheMiddle) }

func testKilledInTheMiddle(t *testing.T, options clustertest.Options) {
	const pods, perNode = 60, 10
	options.ReservationTimeout = 600 // nobody waits for entries to expire
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(pods / perNode)
	config := local(slices.Repeat([][]int64{{100}}, pods/perNode)...)
	config.Confirming = true
	config.RefreshDelay, config.VolumeDelay = 200*time.Millisecond, 100*time.Millisecond
	config.WritesPerSecond = 10
	driver := c.StartDriver(config)
	for i := range pods {
		c.CreatePod(clustertest.Pod{Name: fmt.Sprintf("pod-%d", i), Class: class, Sizes: []string{"10Gi"}})
	}
	c.Eventually(func(context.Context) error {
		if n := driver.Provisioned(); n < pods/3 {
			return fmt.Errorf("%d volumes were created, want %d", n, pods/3)
		}
		return nil
	})
	c.KillScheduler()
	c.StartScheduler()
	for n := range perNode {
		c.WaitForPlaced((n + 1) * pods / perNode)
	}
	if got := driver.Volumes(); !slices.Equal(got, slices.Repeat([]int{perNode}, pods/perNode)) {
		t.Errorf("volumes of the nodes: %v, want %d each", got, perNode)
	}
	c.ExpectNoFailures(driver)
}
