// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// TestManyPods: 100 pods fill 10 nodes, with a driver that publishes late. With
// the feature gate off, pods get nodes that are full already.
func TestManyPods(t *testing.T) {
	const nodes, perNode = 10, 10
	withAndWithout(t, func(t *testing.T, options clustertest.Options) {
		c := clustertest.StartWith(ktesting.Init(t), options)
		c.CreateNodes(nodes)
		config := local(slices.Repeat([][]int64{{100}}, nodes)...)
		config.RefreshDelay = 200 * time.Millisecond
		driver := c.StartDriver(config)

		for i := range nodes * perNode {
			c.CreatePod(clustertest.Pod{Name: fmt.Sprintf("pod-%d", i), Class: class, Sizes: []string{"10Gi"}})
		}
		if options.GateOff {
			expectFailures(c, driver)
			return
		}
		// In steps, because each has the time limit on a busy machine.
		for n := range perNode {
			c.WaitForPlaced((n + 1) * nodes)
		}
		if got := driver.Volumes(); !slices.Equal(got, slices.Repeat([]int{perNode}, nodes)) {
			t.Errorf("volumes of the nodes: %v, want %d each", got, perNode)
		}
		expectNoFailures(c, driver)
	})
}
