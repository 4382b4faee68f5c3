package rescheduling

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// startAtHome starts a control plane, with nodes that have the pools of a driver, and
// app on node-1 with a volume of this size.
func startAtHome(t *testing.T, options clustertest.Options, size string, config modeldriver.Config) (*clustertest.Cluster, *modeldriver.Driver, *history) {
	t.Helper()
	c := start(t, options)
	createNodes(c, len(config.Segments))
	driver := c.StartDriver(config)
	startApp(c, size)
	return c, driver, observe(c, app.Claims[0])
}

// TestStaleSelectedNode: the node affinity of a volume counts, and not the node for
// which the claim was provisioned, which is gone. The node is full of this volume.
func TestStaleSelectedNode(t *testing.T) { clustertest.ForEachPolicy(t, testStaleSelectedNode) }

func testStaleSelectedNode(t *testing.T, options clustertest.Options) {
	c := start(t, options)
	createNodes(c, 2)
	driver := c.StartDriver(local([]int64{100}, []int64{10}))
	startApp(c, "100Gi")
	_, err := c.Client().CoreV1().PersistentVolumeClaims(c.Namespace).Patch(c, "data-app-0", types.MergePatchType,
		fmt.Appendf(nil, `{"metadata": {"annotations": {%q: "gone"}}}`, selectedNode), metav1.PatchOptions{})
	c.ExpectNoError(err, "change selected node")
	data := observe(c, "data-app-0")

	c.DeletePod(app)
	c.CreatePod(app)
	c.ExpectNode(app.Name, "node-1")
	data.expectUntouched(c)
	expectVolumes(c, driver, 1, 0)
	expectEvents(c)
}

// TestReplicas: a driver with a copy on another node narrows the node affinity. The pod
// goes there, and nothing is rebuilt, so no room is needed.
func TestReplicas(t *testing.T) { clustertest.ForEachPolicy(t, testReplicas) }

func testReplicas(t *testing.T, options clustertest.Options) {
	c := start(t, options)
	createNodes(c, 3)
	config := local([]int64{100}, []int64{100}, []int64{100})
	config.Copies = 2
	driver := c.StartDriver(config)
	startApp(c, "100Gi")
	data := observe(c, "data-app-0")
	expectVolumes(c, driver, 1, 1, 0)

	drain(c)
	expectAffinity(c, "data-app-0", "node-2")
	c.CreatePod(preferring(app, "node-3"))
	c.ExpectNode(app.Name, "node-2")
	data.expectUntouched(c)
	expectVolumes(c, driver, 1, 1, 0)
	expectEvents(c)
}

// TestUncordonBeforeAffinity: a node can be used again, and the driver has not put back
// the node affinity. Then no other node may take the pod, because nothing would check
// for room there.
func TestUncordonBeforeAffinity(t *testing.T) {
	clustertest.ForEachPolicy(t, testUncordonBeforeAffinity)
}

func testUncordonBeforeAffinity(t *testing.T, options clustertest.Options) {
	c, driver, data := startAtHome(t, options, "600Gi", local([]int64{600}, []int64{100}))
	drain(c)
	expectAffinity(c, "data-app-0", "")
	driver.Pause(true)
	c.Uncordon("node-1")
	elsewhere := app
	elsewhere.NodeSelector = clustertest.OnNode("node-2")
	c.CreatePod(elsewhere)
	c.ExpectReason(app.Name, 1, clustertest.VolumeAtHome)
	c.DeletePod(elsewhere)
	c.CreatePod(preferring(app, "node-2"))
	c.ExpectNode(app.Name, "node-1")

	driver.Pause(false)
	expectAffinity(c, "data-app-0", "node-1")
	data.expectUntouched(c)
	expectVolumes(c, driver, 1, 0)
}

// TestAffinityBeforeCordon: the scheduler sees that the node affinity is unset before it
// sees the cordon.
func TestAffinityBeforeCordon(t *testing.T) { clustertest.ForEachPolicy(t, testAffinityBeforeCordon) }

func testAffinityBeforeCordon(t *testing.T, options clustertest.Options) {
	c, driver, data := startAtHome(t, options, "600Gi", local([]int64{600}, []int64{100}))
	driver.Pause(true)
	c.DeletePod(app)
	_, err := c.Client().CoreV1().PersistentVolumes().Patch(c, c.Volume("data-app-0").Name, types.MergePatchType, []byte(`{"spec": {"nodeAffinity": null}}`), metav1.PatchOptions{})
	c.ExpectNoError(err, "unset node affinity")
	c.WaitForVolume("data-app-0")
	c.CreatePod(preferring(app, "node-2"))
	c.ExpectNode(app.Name, "node-1")
	data.expectUntouched(c)
	driver.Pause(false)
	expectVolumes(c, driver, 1, 0)
}

// TestSurge: while a pod runs on the cordoned node, another one with the same claim
// does not pull the volume away. It gets the volume when the first one is gone.
func TestSurge(t *testing.T) { clustertest.ForEachPolicy(t, testSurge) }

func testSurge(t *testing.T, options clustertest.Options) {
	c, driver, data := startAtHome(t, options, "100Gi", local([]int64{100}, []int64{100}))
	c.Cordon("node-1")
	expectAffinity(c, "data-app-0", "")
	surge := clustertest.Pod{Name: "surge", Claims: app.Claims}
	c.CreatePod(surge)
	c.ExpectReason("surge", 1, clustertest.VolumeInUse)
	data.expectUntouched(c)

	c.Evict("node-1")
	c.ExpectNode("surge", "node-2")
	data.expect(c, "node-1", "node-2")
	expectVolumes(c, driver, 0, 1)
}

// TestTolerationPrefersHome: a pod that tolerates the cordon stays where its volume is,
// although another node has much more room, and nothing else to run.
func TestTolerationPrefersHome(t *testing.T) { clustertest.ForEachPolicy(t, testTolerationPrefersHome) }

func testTolerationPrefersHome(t *testing.T, options clustertest.Options) {
	c, driver, data := startAtHome(t, options, "100Gi", local([]int64{100}, []int64{250}))
	drain(c)
	expectAffinity(c, "data-app-0", "")
	c.CreatePod(clustertest.Pod{Name: "busy", NodeSelector: clustertest.OnNode("node-1"), With: func(pod *st.PodWrapper) {
		pod.Toleration(corev1.TaintNodeUnschedulable).Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "100"})
	}})
	c.ExpectNode("busy", "node-1")
	tolerating := app
	tolerating.With = func(pod *st.PodWrapper) { pod.Toleration(corev1.TaintNodeUnschedulable) }
	c.CreatePod(tolerating)
	c.ExpectNode(app.Name, "node-1")
	data.expectUntouched(c)
	expectVolumes(c, driver, 1, 0)
}

// TestRefusal: a driver refuses to rebuild where the published capacity was wrong. The
// next pod goes elsewhere, and not to the same node for ever.
func TestRefusal(t *testing.T) { clustertest.ForEachPolicy(t, testRefusal) }

func testRefusal(t *testing.T, options clustertest.Options) {
	config := local([]int64{100}, []int64{100}, []int64{100})
	config.RefreshDelay = time.Hour
	c, driver, data := startAtHome(t, options, "100Gi", config)
	driver.Resize(1, 0, -1<<30)
	drain(c)
	pod := preferring(app, "node-2")
	c.CreatePod(pod)
	c.ExpectNode(app.Name, "node-2")
	c.Eventually(func(context.Context) error {
		if driver.Failed() == 0 {
			return errors.New("the driver has not refused")
		}
		return nil
	})

	driver.Publish()
	c.WaitForCapacity(99 << 30)
	c.DeletePod(pod)
	c.CreatePod(pod)
	c.ExpectNode(app.Name, "node-3")
	data.expect(c, "node-1", "node-2", "node-3")
	c.Eventually(func(context.Context) error {
		if got := driver.Volumes(); fmt.Sprint(got) != "[0 0 1]" {
			return fmt.Errorf("volumes of the nodes: %v", got)
		}
		return nil
	})
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
				c := start(t, options)
				createNodes(c, 2)
				c.StartDriver(local([]int64{100}, []int64{99}))
				startApp(c, "100Gi")
				drain(c)
				c.CreatePod(app)
				c.ExpectNoRoom(app.Name, 1)
				c.ExpectNoError(tc.delete(c), "delete")
				c.ExpectNode(app.Name, "node-2")
			})
		})
	}
}
