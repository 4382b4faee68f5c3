// SPDX-License-Identifier: Apache-2.0

package rescheduling

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"capacityv2.internal/test-integration/clustertest"
)

// TestSentOnWhileCopying: a volume is being copied to node-2 when its pod gets node-3. The
// driver must not say then that it is on node-2.
func TestSentOnWhileCopying(t *testing.T) { clustertest.ForAnyPolicy(t, testSentOnWhileCopying) }

func testSentOnWhileCopying(t *testing.T, options clustertest.Options) {
	c, driver, data := startAtHome(t, options, "100Gi", local([]int64{100}, []int64{100}, []int64{100}))
	driver.Slow(true)
	drain(c)
	c.CreatePod(preferring(app, "node-2"))
	c.ExpectNode(app.Name, "node-2")
	expectCopies(c, driver, "node-1", "node-2")

	c.DeletePod(app)
	c.CreatePod(preferring(app, "node-3"))
	c.ExpectNode(app.Name, "node-3")
	expectCopies(c, driver, "node-1", "node-3")
	driver.Slow(false)
	expectAffinity(c, "node-3")
	data.expect(c, "node-1", "node-2", "node-3")
	expectVolumes(c, driver, 0, 0, 1)
}

// TestSlowCopy: the room for a copy stays reserved while a pod waits for it there, also for
// longer than the timeout of a reservation, by a scheduler that has not decided it, and for
// another pod than the first one.
func TestSlowCopy(t *testing.T) {
	cases := maps.Clone(schedulers)
	cases["recreated-pod"] = func(c *clustertest.Cluster) {
		c.DeletePod(app)
		c.CreatePod(preferring(app, "node-2"))
		c.ExpectNode(app.Name, "node-2")
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// With Object, nothing is reserved for longer.
			testSlowCopy(t, clustertest.Options{Policy: config.InFlightCapacityReservation, ReservationTimeout: 3}, change)
		})
	}
}

func testSlowCopy(t *testing.T, options clustertest.Options, change func(*clustertest.Cluster)) {
	disks := local([]int64{100}, []int64{100}, []int64{100})
	disks.BeforeCreate = func(_ context.Context, claim string) error {
		if claim == "lost" {
			return errors.New("the volume does not come")
		}
		return nil
	}
	c, driver, _ := startAtHome(t, options, "100Gi", disks)
	driver.Slow(true)
	drain(c)
	c.CreatePod(preferring(app, "node-2"))
	c.ExpectNode(app.Name, "node-2")
	expectCopies(c, driver, "node-1", "node-2")
	change(c)

	// What is reserved on node-3 for a volume that does not come shows when the time is over.
	begin := time.Now()
	c.CreateClaim("lost", class, "100Gi")
	lost := on("node-3", "lost")
	c.CreatePod(lost)
	c.ExpectSelected("lost", "node-3")
	c.DeletePod(lost)
	c.CreateClaim("clock", class, "100Gi")
	c.CreatePod(on("node-3", "clock"))
	c.ExpectNodeAfter(begin, "clock", "node-3")

	c.CreateClaim("other", class, "100Gi")
	c.CreatePod(on("node-2", "other"))
	c.ExpectReason("other", 1, clustertest.Reserved)
	driver.Slow(false)
	expectAffinity(c, "node-2")
	c.ExpectReason("other", 1, clustertest.NoRoom)
	c.ExpectNoFailures(driver)
}

// on returns a pod for a node, with a claim of its name.
func on(node, name string) clustertest.Pod {
	return clustertest.Pod{Name: name, Claims: []string{name}, NodeSelector: clustertest.OnNode(node)}
}

// TestBackHomeWhileCopying: a volume is being copied to node-2 when its next pod tolerates
// the cordon and gets node-1, which has the data. It is served there, and what was copied is
// removed.
func TestBackHomeWhileCopying(t *testing.T) { clustertest.ForAnyPolicy(t, testBackHomeWhileCopying) }

func testBackHomeWhileCopying(t *testing.T, options clustertest.Options) {
	c, driver, data := startCopying(t, options)

	c.DeletePod(app)
	tolerating := app
	tolerating.With = func(pod *st.PodWrapper) { pod.Toleration(corev1.TaintNodeUnschedulable) }
	c.CreatePod(tolerating)
	c.ExpectNode(app.Name, "node-1")
	data.expect(c, "node-1", "node-2", "node-1")
	expectCopies(c, driver, "node-1")
	driver.Slow(false)
	c.Stays(func(context.Context) error { return placeIs(c, releasedFrom(c, "node-1")) })

	c.Uncordon("node-1")
	expectAffinity(c, "node-1")
	expectVolumes(c, driver, 1, 0)
}
