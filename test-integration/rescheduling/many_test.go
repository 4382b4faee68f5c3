// SPDX-License-Identifier: Apache-2.0

package rescheduling

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/apis/config"

	"capacityv2.internal/test-integration/clustertest"
)

// TestDrainMany: 20 pods leave a node for others with room for exactly them, and all
// would rather go to one of these. The driver is late to publish what a rebuild has
// taken, or leaves that to the next poll.
func TestDrainMany(t *testing.T) {
	t.Run("late", func(t *testing.T) {
		clustertest.ForAnyPolicy(t, func(t *testing.T, options clustertest.Options) { testDrainMany(t, options, false) })
	})
	// Not with Object: an object that is not refreshed takes one pod for each timeout.
	t.Run("silent/InFlight", func(t *testing.T) {
		t.Parallel()
		testDrainMany(t, clustertest.Options{Policy: config.InFlightCapacityReservation}, true)
	})
}

func testDrainMany(t *testing.T, options clustertest.Options, silent bool) {
	const pods = 20
	options.ReservationTimeout = 600 // nobody waits until it is over
	c := start(t, options)
	createNodes(c, 3)
	late := local([]int64{200}, []int64{100}, []int64{100})
	late.RefreshDelay, late.SilentRebuild = 500*time.Millisecond, silent
	driver := c.StartDriver(late)
	var all []clustertest.Pod
	for i := range pods {
		pod := clustertest.Pod{Name: fmt.Sprintf("app-%d", i), Claims: []string{fmt.Sprintf("data-app-%d", i)}, NodeSelector: clustertest.OnNode("node-1")}
		all = append(all, pod)
		c.CreateClaim(pod.Claims[0], class, "10Gi")
		c.CreatePod(pod)
	}
	c.WaitForPlaced(pods)
	drain(c)
	for _, pod := range all {
		pod.NodeSelector = nil
		c.CreatePod(preferring(pod, "node-2"))
	}
	c.WaitForPlaced(pods)
	expectVolumes(c, driver, 0, 10, 10)
}
