// SPDX-License-Identifier: Apache-2.0

package rescheduling

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"capacityv2.internal/test-integration/clustertest"
)

// TestMovedByDriver: a driver has moved a volume to node-3, which is drained. The claim
// still names node-1, which is healthy, and full. There is no privilege for it.
func TestMovedByDriver(t *testing.T) { clustertest.ForAnyPolicy(t, testMovedByDriver) }

func testMovedByDriver(t *testing.T, options clustertest.Options) {
	c, driver, data := startAtHome(t, options, "100Gi", local([]int64{100}, []int64{99}, []int64{100}))
	c.DeletePod(app)
	c.ExpectNoError(driver.Move(c, c.Volume("data-app-0"), "node-3"), "move volume")
	expectAffinity(c, "node-3")
	expectVolumes(c, driver, 0, 0, 1)
	driver.Resize("node-1", 0, -2<<30)
	c.WaitForCapacity(98 << 30)

	c.Cordon("node-3")
	expectReleased(c, "node-3")
	c.CreatePod(app)
	c.ExpectNoRoom(app.Name, 2)
	data.expectUntouched(c)

	driver.Resize("node-2", 0, 1<<30)
	c.ExpectNode(app.Name, "node-2")
	data.expect(c, "node-1", "node-2")
	expectVolumes(c, driver, 0, 1, 0)
	expectAffinity(c, "node-2")
}

// TestSentByAnybody: node-1 can be used again, and somebody has sent the claim to a node that
// is full. Every author of a claim may do that. Only node-1 has the data.
func TestSentByAnybody(t *testing.T) { clustertest.ForAnyPolicy(t, testSentByAnybody) }

func testSentByAnybody(t *testing.T, options clustertest.Options) {
	c, driver, data := startAtHome(t, options, "100Gi", local([]int64{100}, []int64{10}))
	drain(c)
	expectReleased(c, "node-1")
	send(c, "node-2")
	c.Uncordon("node-1")
	c.CreatePod(preferring(app, "node-2"))
	c.ExpectNode(app.Name, "node-1")
	data.expect(c, "node-1", "node-2", "node-1")
	expectAffinity(c, "node-1")
	expectVolumes(c, driver, 1, 0)
}

// TestNobodySaysWhere: a driver has unset the node affinity and does not say who has the
// data. While the node to which the claim was sent last is usable, the pod goes there, which needs no room. If
// that is cordoned, another node needs room.
func TestNobodySaysWhere(t *testing.T) { clustertest.ForAnyPolicy(t, testNobodySaysWhere) }

func testNobodySaysWhere(t *testing.T, options clustertest.Options) {
	c, driver, data := startAtHome(t, options, "100Gi", local([]int64{100}, []int64{99}))
	driver.Pause(true)
	_, err := c.Client().CoreV1().PersistentVolumes().Patch(c, data.volume, types.MergePatchType, []byte(`{"spec": {"nodeAffinity": null}}`), metav1.PatchOptions{})
	c.ExpectNoError(err, "unset node affinity")
	c.WaitForVolume("data-app-0")
	c.DeletePod(app)
	c.CreatePod(app)
	c.ExpectNode(app.Name, "node-1")
	drain(c)
	c.CreatePod(app)
	c.ExpectNoRoom(app.Name, 1)
	data.expectUntouched(c)

	driver.Resize("node-2", 0, 1<<30)
	c.ExpectNode(app.Name, "node-2")
	data.expect(c, "node-1", "node-2")
}
