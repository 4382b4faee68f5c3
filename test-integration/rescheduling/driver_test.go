// SPDX-License-Identifier: Apache-2.0

package rescheduling

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"capacityv2.internal/test-integration/clustertest"
)

// TestDriverDown: a driver that is down releases no volume, which keeps the pod from every
// other node. It does so when it is back.
func TestDriverDown(t *testing.T) { clustertest.ForAnyPolicy(t, testDriverDown) }

func testDriverDown(t *testing.T, options clustertest.Options) {
	c, driver, data := startAtHome(t, options, "100Gi", local([]int64{100}, []int64{100}))
	driver.Pause(true)
	drain(c)
	c.CreatePod(app)
	c.ExpectReason(app.Name, 1, clustertest.VolumeElsewhere)
	data.expectUntouched(c)
	expectEvents(c)

	driver.Pause(false)
	c.ExpectNode(app.Name, "node-2")
	data.expect(c, "node-1", "node-2")
	expectVolumes(c, driver, 0, 1)
}

// TestWithoutIt: without the feature gate, or for a driver that does not rebuild
// volumes, it is as it always was. The pod goes where its volume may be used,
// whether or not there is room, and the claim still has the old node.
func TestWithoutIt(t *testing.T) {
	t.Run("gate-off", func(t *testing.T) { testWithoutIt(t, clustertest.Options{GateOff: true}) })
	t.Run("driver-off", func(t *testing.T) { clustertest.ForAnyPolicyInTurn(t, testWithoutIt) })
}

func testWithoutIt(t *testing.T, options clustertest.Options) {
	c, _, data := startAtHome(t, options, "100Gi", local([]int64{100}, []int64{10}))
	rescheduled := c.Rescheduled()
	drain(c)
	expectReleased(c, "data-app-0", "node-1")
	c.CreatePod(app)
	if !options.GateOff {
		c.ExpectNoRoom(app.Name, 1)
		_, err := c.Client().StorageV1().CSIDrivers().Patch(c, driverName, types.MergePatchType,
			[]byte(`{"spec": {"volumeRebuilding": false}}`), metav1.PatchOptions{})
		c.ExpectNoError(err, "turn off volumeRebuilding")
	}
	c.ExpectNode(app.Name, "node-2")
	data.expectUntouched(c)
	expectEvents(c)
	if got := c.Rescheduled() - rescheduled; got != 0 {
		c.Errorf("%d claims were rescheduled, want none", got)
	}
}

// TestDriverObjectIsAway: while the CSIDriver object of a driver is replaced, a pod whose volume has to be rebuilt goes to no
// other node, whatever room there is. It is woken when the object is back.
func TestDriverObjectIsAway(t *testing.T) { clustertest.ForAnyPolicy(t, testDriverObjectIsAway) }

func testDriverObjectIsAway(t *testing.T, options clustertest.Options) {
	c, driver, data := startAtHome(t, options, "100Gi", local([]int64{100}, []int64{99}))
	drain(c)
	c.CreatePod(app)
	c.ExpectNoRoom(app.Name, 1)
	drivers := c.Client().StorageV1().CSIDrivers()
	old, err := drivers.Get(c, driverName, metav1.GetOptions{})
	c.ExpectNoError(err, "get driver")
	c.ExpectNoError(drivers.Delete(c, driverName, metav1.DeleteOptions{}), "delete driver")
	driver.Resize("node-2", 0, 1<<30)
	c.DeletePod(app)
	c.CreatePod(app)
	c.ExpectReason(app.Name, 1, clustertest.RebuildDriver)
	data.expectUntouched(c)

	old.ObjectMeta = metav1.ObjectMeta{Name: driverName}
	_, err = drivers.Create(c, old, metav1.CreateOptions{})
	c.ExpectNoError(err, "create driver")
	c.ExpectNode(app.Name, "node-2")
}

// TestChangedClass: a class is deleted, and created again with other parameters. A pod that waits for room goes on to
// wait meanwhile, and is woken then.
func TestChangedClass(t *testing.T) { clustertest.ForAnyPolicy(t, testChangedClass) }

func testChangedClass(t *testing.T, options clustertest.Options) {
	c, driver, data := startAtHome(t, options, "100Gi", local([]int64{100}, []int64{99}))
	drain(c)
	c.CreatePod(app)
	c.ExpectNoRoom(app.Name, 1)
	classes := c.Client().StorageV1().StorageClasses()
	old, err := classes.Get(c, class, metav1.GetOptions{})
	c.ExpectNoError(err, "get class")
	c.ExpectNoError(classes.Delete(c, class, metav1.DeleteOptions{}), "delete class")
	driver.Resize("node-2", 0, 1<<30)
	c.DeletePod(app)
	c.CreatePod(app)
	c.ExpectReason(app.Name, 1, clustertest.RebuildClass)
	data.expectUntouched(c)

	old.ObjectMeta = metav1.ObjectMeta{Name: class}
	_, err = classes.Create(c, old, metav1.CreateOptions{})
	c.ExpectNoError(err, "create class")
	c.ExpectNode(app.Name, "node-2")
}
