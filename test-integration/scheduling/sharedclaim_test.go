// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// TestPodsWithOneClaim: five pods share a claim. Its volume is in flight once, and not at all when
// it is shown.
func TestPodsWithOneClaim(t *testing.T) {
	clustertest.ForAnyPolicyInTurn(t, func(t *testing.T, options clustertest.Options) {
		c := clustertest.StartWith(ktesting.Init(t), options)
		c.CreateNodes(1)
		driver := c.StartDriver(unpublished([]int64{100}))
		c.CreateClaim("shared", class, "60Gi")
		for i := range 5 {
			c.CreatePod(clustertest.Pod{Name: fmt.Sprintf("pod-%d", i), Claims: []string{"shared"}})
		}
		c.WaitForPlaced(5)
		expectInFlight(c, 60)

		driver.Publish()
		expectInFlight(c, 0)
		c.CreatePod(clustertest.Pod{Name: "another", Class: class, Sizes: []string{"40Gi"}})
		c.ExpectNode("another", "node-1")
		c.ExpectNoFailures(driver)
	})
}

// expectInFlight waits until the scheduler says that so many GiB of the class are reserved, and
// checks that it stays so.
func expectInFlight(c *clustertest.Cluster, gib int) {
	c.Helper()
	check := func(context.Context) error {
		if got := c.InFlight(class); got != gib<<30 {
			return fmt.Errorf("%d bytes of class %s are in flight, want %d", got, class, gib<<30)
		}
		return nil
	}
	c.Eventually(check)
	c.Stays(check)
}
