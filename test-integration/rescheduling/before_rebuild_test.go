package rescheduling

import (
	"errors"
	"testing"

	"capacityv2.internal/test-integration/clustertest"
)

// TestFailedBindingBeforeRebuild: binding a pod fails after another node was selected
// for its claim, and before the driver is asked to rebuild the volume there. The node
// that the pod would rather use has no room.
func TestFailedBindingBeforeRebuild(t *testing.T) {
	clustertest.ForEachPolicy(t, testFailedBindingBeforeRebuild)
}

func testFailedBindingBeforeRebuild(t *testing.T, options clustertest.Options) {
	c, binding := startHolding(t, options, "node-2", false)
	binding.Fail = errors.New("fails once")
	c.CreateNodes(3)
	driver := c.StartDriver(local([]int64{100}, []int64{100}, []int64{99}))
	startApp(c, "100Gi")
	data := observe(c, "data-app-0")
	drain(c)
	c.CreatePod(preferring(app, "node-3"))
	binding.Wait(c)
	data.expect(c, "node-1", "node-2")

	close(binding.GoOn)
	c.ExpectNode(app.Name, "node-2")
	expectVolumes(c, driver, 0, 1, 0)
}
