package rescheduling

import (
	"fmt"
	"testing"

	"capacityv2.internal/test-integration/clustertest"
)

// TestMove is Story 3 of the KEP: a pod whose volume is on a node that is not usable
// any more waits until another node has room for the volume, and goes there. The same
// volume moves three times.
func TestMove(t *testing.T) { clustertest.ForEachPolicyInTurn(t, testMove) }

func testMove(t *testing.T, options clustertest.Options) {
	c := start(t, options)
	createNodes(c, 4)
	driver := c.StartDriver(local([]int64{100}, []int64{99}, []int64{99}, []int64{99}))
	startApp(c, "100Gi")
	data, rescheduled := observe(c, "data-app-0"), c.Rescheduled()

	nodes, volumes, events := []string{"node-1"}, []int{1, 0, 0, 0}, []string{}
	for i, leave := range []func(string){c.Cordon, c.PutOutOfService, c.DeleteNode} {
		node, next := nodes[i], fmt.Sprintf("node-%d", i+2)
		leave(node)
		c.Evict(node)
		c.CreatePod(app)
		c.ExpectNoRoom(app.Name, 3-i)
		expectAffinity(c, "data-app-0", "")
		data.expect(c, nodes...)

		driver.Resize(i+1, 0, 1<<30)
		c.ExpectNode(app.Name, next)
		nodes = append(nodes, next)
		data.expect(c, nodes...)
		volumes[i], volumes[i+1] = 0, 1
		expectVolumes(c, driver, volumes...)
		expectAffinity(c, "data-app-0", next)
		events = append(events,
			fmt.Sprintf("PersistentVolumeClaim/data-app-0: Selected node %s instead of %s", next, node),
			fmt.Sprintf("Pod/app-0: Selected node %s for volumes of bound persistentvolumeclaims that need to be rebuilt: data-app-0", next))
		expectEvents(c, events...)
		if got := c.Rescheduled() - rescheduled; got != i+1 {
			c.Errorf("%d claims were rescheduled, want %d", got, i+1)
		}
	}
}
