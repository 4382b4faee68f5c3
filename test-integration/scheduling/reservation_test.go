package scheduling

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// TestStaleCapacity is Story 2 of the KEP: 10 pods of 20 GiB, a node of 100 GiB,
// and a driver that publishes late. With the feature gate off, pods get the node
// although there is no room; otherwise the test would prove nothing.
func TestStaleCapacity(t *testing.T) {
	for name, options := range map[string]clustertest.Options{"gate-on": {}, "gate-off": {GateOff: true}} {
		t.Run(name, func(t *testing.T) {
			c := clustertest.StartWith(ktesting.Init(t), options)
			c.CreateNodes(1)
			config := local([]int64{100})
			config.RefreshDelay = 2 * time.Second
			driver := c.StartDriver(config)
			for i := range 10 {
				c.CreatePod(clustertest.Pod{Name: fmt.Sprintf("pod-%d", i), Class: class, Sizes: []string{"20Gi"}})
			}
			c.Eventually(func(context.Context) error {
				if n := driver.Volumes()[0]; n != 5 {
					return fmt.Errorf("%d volumes, want 5", n)
				}
				return nil
			})
			t.Logf("%d volumes were asked for where there was no room", driver.Failed())
			if !options.GateOff {
				expectNoFailures(c, driver)
			} else if driver.Failed() == 0 {
				t.Error("no volume was asked for where there was no room, want some with the gate off")
			}
		})
	}
}

// TestReservedCapacity: a pod says that it waits for capacity to be refreshed, and
// goes on when it is.
func TestReservedCapacity(t *testing.T) {
	c := clustertest.Start(ktesting.Init(t))
	c.CreateNodes(2)
	config := local([]int64{100}, []int64{10})
	config.RefreshDelay = 5 * time.Second
	driver := c.StartDriver(config)

	c.CreatePod(clustertest.Pod{Name: "first", Class: class, Sizes: []string{"20Gi"}})
	c.ExpectNode("first", "node-1")
	woken := c.Woken(capacityEvents)
	c.CreatePod(clustertest.Pod{Name: "waits", Class: class, Sizes: []string{"20Gi"}})
	c.ExpectReason("waits", 1, clustertest.Reserved)
	c.CreatePod(clustertest.Pod{Name: "never", Class: class, Sizes: []string{"200Gi"}})
	c.ExpectNoRoom("never", 2)

	c.ExpectNode("waits", "node-1")
	// None, if the pod was about to be tried again anyway.
	if got := c.Woken(capacityEvents) - woken; got > 1 {
		c.Errorf("%d pods were woken, want only the one that waited for the object", got)
	}
	expectNoFailures(c, driver)
}
