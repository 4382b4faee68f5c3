// SPDX-License-Identifier: Apache-2.0

package rescheduling

import (
	"context"
	"errors"
	"testing"
	"time"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// startRefused drains node-1, whose volume its driver refuses to rebuild on node-2: there is
// less room than is published. node-3 is full.
func startRefused(t *testing.T, options clustertest.Options) (*clustertest.Cluster, *modeldriver.Driver, *history) {
	t.Helper()
	config := local([]int64{100}, []int64{100}, []int64{98})
	// Only when the test says so.
	config.RefreshDelay = time.Hour
	c, driver, data := startAtHome(t, options, "100Gi", config)
	driver.Resize("node-2", 0, -1<<30)
	drain(c)
	expectReleased(c, "node-1")
	c.CreatePod(preferring(app, "node-2"))
	c.ExpectNode(app.Name, "node-2")
	c.Eventually(func(context.Context) error {
		if driver.Failed() == 0 {
			return errors.New("the driver has not refused")
		}
		return nil
	})
	driver.Publish()
	c.WaitForCapacity(99 << 30)
	c.DeletePod(app)
	return c, driver, data
}

// schedulers are one that goes on, and one that is killed and started in the middle.
var schedulers = map[string]func(*clustertest.Cluster){
	"same-scheduler": func(*clustertest.Cluster) {},
	"restarted": func(c *clustertest.Cluster) {
		c.KillScheduler()
		c.StartScheduler()
	},
}

func forEachScheduler(t *testing.T, test func(t *testing.T, options clustertest.Options, restart func(*clustertest.Cluster))) {
	t.Helper()
	for name, restart := range schedulers {
		t.Run(name, func(t *testing.T) {
			clustertest.ForAnyPolicy(t, func(t *testing.T, options clustertest.Options) { test(t, options, restart) })
		})
	}
}

// TestRefusal: after a refusal, the next pod goes where there is room, and not to the same
// node for ever.
func TestRefusal(t *testing.T) { forEachScheduler(t, testRefusal) }

func testRefusal(t *testing.T, options clustertest.Options, restart func(*clustertest.Cluster)) {
	c, driver, data := startRefused(t, options)
	restart(c)
	c.CreatePod(preferring(app, "node-2"))
	c.ExpectNoRoom(app.Name, 2)
	data.expect(c, "node-1", "node-2")

	driver.Resize("node-3", 0, 2<<30)
	driver.Publish()
	c.ExpectNode(app.Name, "node-3")
	data.expect(c, "node-1", "node-2", "node-3")
	expectAffinity(c, "node-3")
	expectCopies(c, driver, "node-3")
}

// TestUncordonAfterRefusal: after a refusal, the node with the data can be used again. The
// next pod goes there, although the claim was sent elsewhere last.
func TestUncordonAfterRefusal(t *testing.T) { forEachScheduler(t, testUncordonAfterRefusal) }

func testUncordonAfterRefusal(t *testing.T, options clustertest.Options, restart func(*clustertest.Cluster)) {
	c, driver, data := startRefused(t, options)
	restart(c)
	c.Uncordon("node-1")
	c.CreatePod(preferring(app, "node-2"))
	c.ExpectNode(app.Name, "node-1")
	data.expect(c, "node-1", "node-2", "node-1")
	expectAffinity(c, "node-1")
	expectCopies(c, driver, "node-1")
}
