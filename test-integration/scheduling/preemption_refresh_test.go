package scheduling

import (
	"testing"

	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// TestPreemptionAfterReservation: a pod that would have preempted, if it had not
// had to wait for capacity, does so when the capacity is refreshed.
func TestPreemptionAfterReservation(t *testing.T) {
	c := clustertest.Start(ktesting.Init(t))
	c.CreateNodes(1)
	driver := c.StartDriver(unpublished([]int64{100}))
	createPriorityClasses(c, map[string]int32{"low": 1, "high": 100})

	victim := clustertest.Pod{Name: "victim", With: withPriority("low", withCPU("600"))}
	c.CreatePod(victim)
	c.ExpectNode("victim", "node-1")
	c.CreatePod(clustertest.Pod{Name: "owner", Class: class, Sizes: []string{"20Gi"}})
	c.ExpectNode("owner", "node-1")
	c.CreatePod(clustertest.Pod{Name: "preemptor", Class: class, Sizes: []string{"20Gi"}, With: withPriority("high", withCPU("600"))})
	c.ExpectReason("preemptor", 1, clustertest.Reserved)

	driver.Publish()
	waitForPreempted(c, "victim")
	c.DeletePod(victim)
	c.ExpectNode("preemptor", "node-1")
	expectNoFailures(c, driver)
}
