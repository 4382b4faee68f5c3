package rescheduling

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"capacityv2.internal/test-integration/clustertest"
)

// TestAffinityNotUnset: a driver that does not give a volume free keeps the pod from
// every other node.
func TestAffinityNotUnset(t *testing.T) { clustertest.ForEachPolicy(t, testAffinityNotUnset) }

func testAffinityNotUnset(t *testing.T, options clustertest.Options) {
	c := start(t, options)
	createNodes(c, 2)
	driver := c.StartDriver(local([]int64{100}, []int64{100}))
	driver.KeepAffinity(true)
	startApp(c, "100Gi")
	data := observe(c, "data-app-0")
	drain(c)
	c.CreatePod(app)
	c.ExpectReason(app.Name, 1, clustertest.VolumeElsewhere)
	data.expectUntouched(c)
	expectEvents(c)

	driver.KeepAffinity(false)
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
	c := start(t, options)
	createNodes(c, 2)
	driver := c.StartDriver(local([]int64{100}, []int64{10}))
	startApp(c, "100Gi")
	data, rescheduled := observe(c, "data-app-0"), c.Rescheduled()
	drain(c)
	c.CreatePod(app)
	if !options.GateOff {
		c.ExpectNoRoom(app.Name, 1)
		_, err := c.Client().StorageV1().CSIDrivers().Patch(c, driverName, types.MergePatchType,
			[]byte(`{"spec": {"volumeRebuilding": false}}`), metav1.PatchOptions{})
		c.ExpectNoError(err, "turn off volumeRebuilding")
	}
	c.ExpectNode(app.Name, "node-2")
	c.Eventually(func(context.Context) error {
		if driver.Failed() == 0 {
			return errors.New("the volume was not asked for where there is no room")
		}
		return nil
	})
	data.expectUntouched(c)
	expectEvents(c)
	if got := c.Rescheduled() - rescheduled; got != 0 {
		c.Errorf("%d claims were rescheduled, want none", got)
	}
}
