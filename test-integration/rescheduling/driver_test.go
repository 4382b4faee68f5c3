// SPDX-License-Identifier: Apache-2.0

package rescheduling

import (
	"context"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"capacityv2.internal/test-integration/clustertest"
)

// TestWithoutIt: without the feature gate, it is as it always was. The pod goes where its volume may be used, whether or
// not there is room, and the claim still has the old node. If the driver does not rebuild volumes any more, the pod waits for the
// node with the data.
func TestWithoutIt(t *testing.T) {
	t.Run("gate-off", func(t *testing.T) {
		testWithoutIt(t, clustertest.Options{GateOff: true}, func(c *clustertest.Cluster) { c.ExpectNode(app.Name, "node-2") })
	})
	t.Run("driver-off", func(t *testing.T) {
		clustertest.ForAnyPolicyInTurn(t, func(t *testing.T, options clustertest.Options) {
			testWithoutIt(t, options, func(c *clustertest.Cluster) {
				c.ExpectNoRoom(app.Name, 1)
				_, err := c.Client().StorageV1().CSIDrivers().Patch(c, driverName, types.MergePatchType,
					[]byte(`{"spec": {"volumeRebuilding": false}}`), metav1.PatchOptions{})
				c.ExpectNoError(err, "turn off volumeRebuilding")
				c.ExpectReason(app.Name, 1, clustertest.RebuildDriver)
			})
		})
	})
}

func testWithoutIt(t *testing.T, options clustertest.Options, check func(c *clustertest.Cluster)) {
	c, _, data := startAtHome(t, options, "100Gi", local([]int64{100}, []int64{10}))
	rescheduled := c.Rescheduled()
	drain(c)
	expectReleased(c, "node-1")
	c.CreatePod(app)
	check(c)
	data.expectUntouched(c)
	if got := c.Rescheduled() - rescheduled; got != 0 {
		c.Errorf("%d claims were rescheduled, want none", got)
	}
}

// TestDriverObjectIsAway: while the CSIDriver object of a driver is replaced, a pod whose volume has to be rebuilt goes to no
// other node, whatever room there is. It is woken when the object is back.
func TestDriverObjectIsAway(t *testing.T) {
	clustertest.ForAnyPolicy(t, func(t *testing.T, options clustertest.Options) {
		testReplaced(t, options, driverName, clustertest.RebuildDriver, func(c *clustertest.Cluster) replaceable[*storagev1.CSIDriver] {
			return c.Client().StorageV1().CSIDrivers()
		})
	})
}

// TestChangedClass: a class is deleted, and created again with other parameters. A pod that waits for room goes on to
// wait meanwhile, and is woken then.
func TestChangedClass(t *testing.T) {
	clustertest.ForAnyPolicy(t, func(t *testing.T, options clustertest.Options) {
		testReplaced(t, options, class, clustertest.RebuildClass, func(c *clustertest.Cluster) replaceable[*storagev1.StorageClass] {
			return c.Client().StorageV1().StorageClasses()
		})
	})
}

// replaceable is a client for objects that are deleted and created again.
type replaceable[T metav1.Object] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
}

// testReplaced deletes an object without which it is not known whether app may go to node-2, and creates it again. Meanwhile app waits for a
// reason of its own, although there is room.
func testReplaced[T metav1.Object](t *testing.T, options clustertest.Options, name, reason string, client func(*clustertest.Cluster) replaceable[T]) {
	c, driver, data := startAtHome(t, options, "100Gi", local([]int64{100}, []int64{99}))
	drain(c)
	c.CreatePod(app)
	c.ExpectNoRoom(app.Name, 1)
	objects := client(c)
	old, err := objects.Get(c, name, metav1.GetOptions{})
	c.ExpectNoError(err, "get", name)
	c.ExpectNoError(objects.Delete(c, name, metav1.DeleteOptions{}), "delete", name)
	c.WaitForScheduler()
	driver.Resize("node-2", 0, 1<<30)
	c.DeletePod(app)
	c.CreatePod(app)
	c.ExpectReason(app.Name, 1, reason)
	data.expectUntouched(c)

	old.SetUID("")
	old.SetResourceVersion("")
	old.SetManagedFields(nil)
	_, err = objects.Create(c, old, metav1.CreateOptions{})
	c.ExpectNoError(err, "create", name)
	c.ExpectNode(app.Name, "node-2")
}
