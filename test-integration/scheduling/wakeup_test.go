// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// capacityEvents are those by which the scheduler learns of capacity.
const capacityEvents = "storage.k8s.io/CSIStorageCapacity"

// TestWakeUp: capacity that grows wakes the pods that wait for its class, and no other pod. Less room is no reason to try a pod
// again. The queue would flush its pods after five minutes only.
func TestWakeUp(t *testing.T) { clustertest.ForAnyPolicyInTurn(t, testWakeUp) }

func testWakeUp(t *testing.T, options clustertest.Options) {
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(1)
	driver := c.StartDriver(local([]int64{70, 10}))
	other := local([]int64{10})
	other.Name, other.Classes = "other.example.com", []string{"other"}
	c.StartDriver(other)

	c.CreatePod(clustertest.Pod{Name: "unrelated", Class: "other", Sizes: []string{"20Gi"}})
	c.ExpectNoRoom("unrelated", 1)
	c.CreatePod(clustertest.Pod{Name: "waiting", Class: class, Sizes: []string{"60Gi", "60Gi"}})
	c.ExpectNoRoom("waiting", 1)
	woken := c.Woken(capacityEvents)

	driver.Resize("node-1", 0, -10<<30)
	c.WaitForCapacity(70 << 30)
	c.Stays(func(context.Context) error {
		if got := c.Woken(capacityEvents) - woken; got != 0 {
			return fmt.Errorf("%d pods were woken, want none", got)
		}
		return nil
	})

	// The largest pool does not grow.
	driver.Resize("node-1", 1, 50<<30)
	c.ExpectNode("waiting", "node-1")
	// None, if the pod was about to be tried again anyway.
	if got := c.Woken(capacityEvents) - woken; got > 1 {
		c.Errorf("%d pods were woken, want only the one that waited for the class", got)
	}
	c.ExpectNoFailures(driver)
}
