// SPDX-License-Identifier: Apache-2.0

package rescheduling

import (
	"context"
	"fmt"
	"testing"

	"capacityv2.internal/test-integration/clustertest"
)

// TestMove is Story 3 of the KEP: a pod whose volume is on a node that is not usable
// any more waits until another node has room for the volume, and goes there. The same
// volume moves three times. What is on nodes that are off, nobody can remove.
func TestMove(t *testing.T) { clustertest.ForAnyPolicyInTurn(t, testMove) }

func testMove(t *testing.T, options clustertest.Options) {
	c := start(t, options)
	createNodes(c, 4)
	driver := c.StartDriver(local([]int64{100}, []int64{99}, []int64{99}, []int64{99}))
	startApp(c, "100Gi")
	data, rescheduled := observe(c, "data-app-0"), c.Rescheduled()

	nodes, events := []string{"node-1"}, []string{}
	for i, tc := range []struct {
		leave    func(node string)
		released string
		because  string
		volumes  []int
	}{
		{c.Cordon, releasedFrom(c, "node-1"), "no node with its data can be used (node-1)", []int{0, 1, 0, 0}},
		{c.PutOutOfService, releasedFrom(c, "node-2"), "no node with its data can be used (node-2)", []int{0, 1, 1, 0}},
		{c.DeleteNode, releasedFrom(c), "no node has its data", []int{0, 1, 1, 1}},
	} {
		node, next := nodes[i], fmt.Sprintf("node-%d", i+2)
		tc.leave(node)
		c.Evict(node)
		c.CreatePod(app)
		c.ExpectNoRoom(app.Name, 3-i)
		expectPlace(c, tc.released)
		data.expect(c, nodes...)
		expectReleasedVolumes(c, 1)

		driver.Resize(next, 0, 1<<30)
		c.ExpectNode(app.Name, next)
		nodes = append(nodes, next)
		data.expect(c, nodes...)
		expectAffinity(c, next)
		expectVolumes(c, driver, tc.volumes...)
		events = append(events,
			fmt.Sprintf("PersistentVolumeClaim/data-app-0: Selected node %s to rebuild the volume: %s", next, tc.because),
			fmt.Sprintf("Pod/app-0: Selected node %s to rebuild the volumes of bound persistentvolumeclaims: data-app-0", next))
		expectEvents(c, events...)
		if got := c.Rescheduled() - rescheduled; got != i+1 {
			c.Errorf("%d claims were rescheduled, want %d", got, i+1)
		}
		c.WaitForVolume("data-app-0")
		expectReleasedVolumes(c, 0)
	}
}

// expectReleasedVolumes waits for the gauge, which is set once a second.
func expectReleasedVolumes(c *clustertest.Cluster, want int) {
	c.Helper()
	c.Eventually(func(context.Context) error {
		if got := c.Released(driverName); got != want {
			return fmt.Errorf("%d volumes are released, want %d", got, want)
		}
		return nil
	})
}
