// SPDX-License-Identifier: Apache-2.0

package rescheduling

import (
	"context"
	"testing"

	"capacityv2.internal/test-integration/clustertest"
)

// TestUncordonBeforeAffinity: a node can be used again, and the driver has not put back
// the node affinity. Then no other node may take the pod, because nothing would check
// for room there.
func TestUncordonBeforeAffinity(t *testing.T) {
	clustertest.ForAnyPolicy(t, testUncordonBeforeAffinity)
}

func testUncordonBeforeAffinity(t *testing.T, options clustertest.Options) {
	c, driver, data := startAtHome(t, options, "600Gi", local([]int64{600}, []int64{100}))
	drain(c)
	expectReleased(c, "node-1")
	driver.Pause(true)
	c.Uncordon("node-1")
	elsewhere := app
	elsewhere.NodeSelector = clustertest.OnNode("node-2")
	c.CreatePod(elsewhere)
	c.ExpectReason(app.Name, 1, clustertest.VolumeAtHome("node-1"))
	c.DeletePod(elsewhere)
	c.CreatePod(preferring(app, "node-2"))
	c.ExpectNode(app.Name, "node-1")

	driver.Pause(false)
	expectAffinity(c, "node-1")
	data.expectUntouched(c)
	expectVolumes(c, driver, 1, 0)
}

// TestUncordonBeforeBinding: a decision is not carried out if the volume can stay
// after all.
func TestUncordonBeforeBinding(t *testing.T) { clustertest.ForAnyPolicy(t, testUncordonBeforeBinding) }

func testUncordonBeforeBinding(t *testing.T, options clustertest.Options) {
	c, binding := startHolding(t, options, true)
	createNodes(c, 2)
	driver := c.StartDriver(local([]int64{100}, []int64{100}))
	startApp(c, "100Gi")
	drain(c)
	c.CreatePod(app)
	binding.Wait(c)

	c.Uncordon("node-1")
	expectAffinity(c, "node-1")
	// The scheduler knows that the node can be used.
	c.CreatePod(clustertest.Pod{Name: "probe", NodeSelector: clustertest.OnNode("node-1")})
	c.ExpectNode("probe", "node-1")
	close(binding.GoOn)

	c.ExpectNode(app.Name, "node-1")
	expectAffinity(c, "node-1")
	expectVolumes(c, driver, 1, 0)
	expectEvents(c)
}

// TestUncordonAfterDecision: a pod has got another node, where its volume is being copied
// to, when the old one can be used again. The volume moves all the same, and the driver does
// not say meanwhile that it is at home.
func TestUncordonAfterDecision(t *testing.T) { clustertest.ForAnyPolicy(t, testUncordonAfterDecision) }

func testUncordonAfterDecision(t *testing.T, options clustertest.Options) {
	c, driver, data := startCopying(t, options)
	c.Uncordon("node-1")
	c.Stays(func(context.Context) error { return placeIs(c, releasedFrom(c, "node-1")) })

	driver.Slow(false)
	expectAffinity(c, "node-2")
	data.expect(c, "node-1", "node-2")
	expectVolumes(c, driver, 0, 1)
}
