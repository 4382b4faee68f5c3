package rescheduling

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"capacityv2.internal/test-integration/clustertest"
)

// TestDriverDown: a driver that is down releases no volume, which keeps the pod from every
// other node. It does so when it is back.
func TestDriverDown(t *testing.T) { clustertest.ForEachPolicy(t, testDriverDown) }

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
	t.Run("driver-off", func(t *testing.T) { clustertest.ForEachPolicyInTurn(t, testWithoutIt) })
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

// TestNothingToCheckAnyMore: a pod that waits for room is woken when its class, or its
// driver, is deleted.
func TestNothingToCheckAnyMore(t *testing.T) {
	for _, tc := range []struct {
		name   string
		delete func(c *clustertest.Cluster) error
	}{
		{"class", func(c *clustertest.Cluster) error {
			return c.Client().StorageV1().StorageClasses().Delete(c, class, metav1.DeleteOptions{})
		}},
		{"driver", func(c *clustertest.Cluster) error {
			return c.Client().StorageV1().CSIDrivers().Delete(c, driverName, metav1.DeleteOptions{})
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			clustertest.ForEachPolicy(t, func(t *testing.T, options clustertest.Options) {
				c, _, _ := startAtHome(t, options, "100Gi", local([]int64{100}, []int64{99}))
				drain(c)
				c.CreatePod(app)
				c.ExpectNoRoom(app.Name, 1)
				c.ExpectNoError(tc.delete(c), "delete")
				c.ExpectNode(app.Name, "node-2")
			})
		})
	}
}
