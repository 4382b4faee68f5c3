// SPDX-License-Identifier: Apache-2.0

package rescheduling

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"capacityv2.internal/test-integration/clustertest"
)

// TestReplicas: while a driver has a copy on another node that can be used, the node
// affinity stays. The pod goes there, and nothing is rebuilt, so no room is needed.
func TestReplicas(t *testing.T) { clustertest.ForAnyPolicy(t, testReplicas) }

func testReplicas(t *testing.T, options clustertest.Options) {
	config := local([]int64{100}, []int64{100}, []int64{100})
	config.Replicas = 2
	c, driver, data := startAtHome(t, options, "100Gi", config)
	expectVolumes(c, driver, 1, 1, 0)

	drain(c)
	c.CreatePod(preferring(app, "node-3"))
	c.ExpectNode(app.Name, "node-2")
	expectAffinity(c, "node-1", "node-2")
	data.expectUntouched(c)
	expectVolumes(c, driver, 1, 1, 0)

	c.Cordon("node-2")
	expectReleased(c, "node-1", "node-2")
}

// TestTopologyIsNoName: what the label of a driver's topology says is not the name of the node.
func TestTopologyIsNoName(t *testing.T) { clustertest.ForAnyPolicy(t, testTopologyIsNoName) }

func testTopologyIsNoName(t *testing.T, options clustertest.Options) {
	const label = "topology.rebuilds.example.com/storage"
	c := start(t, options)
	config := local([]int64{100}, []int64{100})
	for i, value := range []string{"node-2", "b"} { // not node-1, and not node-2
		config.Segments[i].Labels = map[string]string{label: value}
		c.CreateNode(fmt.Sprintf("node-%d", i+1), config.Segments[i].Labels)
	}
	driver := c.StartDriver(config)
	startApp(c, "100Gi")
	data := observe(c, "data-app-0")
	drain(c)
	expectReleased(c, "node-1")
	c.CreatePod(app)
	c.ExpectNode(app.Name, "node-2")
	data.expect(c, "node-1", "node-2")
	expectAffinity(c, "b")
	expectVolumes(c, driver, 0, 1)
}

// TestSurge: while a pod runs on the cordoned node, another one with the same claim
// does not pull the volume away. It gets the volume when the first one is gone.
func TestSurge(t *testing.T) { clustertest.ForAnyPolicy(t, testSurge) }

func testSurge(t *testing.T, options clustertest.Options) {
	c, driver, data := startAtHome(t, options, "100Gi", local([]int64{100}, []int64{100}))
	c.Cordon("node-1")
	expectReleased(c, "node-1")
	surge := clustertest.Pod{Name: "surge", Claims: app.Claims}
	c.CreatePod(surge)
	c.ExpectReason("surge", 1, clustertest.VolumeInUse("node-1"))
	data.expectUntouched(c)

	c.Evict("node-1")
	c.ExpectNode("surge", "node-2")
	data.expect(c, "node-1", "node-2")
	expectVolumes(c, driver, 0, 1)
}

// TestDeletedNodeWithPod: a node was deleted, and nobody has ended its pod. It may still
// write, so the volume stays where it is until the pod is gone.
func TestDeletedNodeWithPod(t *testing.T) { clustertest.ForAnyPolicy(t, testDeletedNodeWithPod) }

func testDeletedNodeWithPod(t *testing.T, options clustertest.Options) {
	c, driver, data := startAtHome(t, options, "100Gi", local([]int64{100}, []int64{100}))
	c.DeleteNode("node-1")
	expectReleased(c)
	next := clustertest.Pod{Name: "next", Claims: app.Claims}
	c.CreatePod(next)
	c.ExpectReason("next", 1, clustertest.VolumeAwaited("node-1"))
	data.expectUntouched(c)

	c.DeletePod(app)
	c.ExpectNode("next", "node-2")
	data.expect(c, "node-1", "node-2")
	// Nobody can remove what is on the node.
	expectVolumes(c, driver, 1, 1)
}

// TestRecreatedNode: a node was deleted and created again under its name. It is no home
// until its driver has seen the data there, because it may have new disks.
func TestRecreatedNode(t *testing.T) {
	for _, tc := range []struct {
		name string
		// hasData is whether the disks are the old ones.
		hasData bool
	}{{"new-disks", false}, {"old-disks", true}} {
		t.Run(tc.name, func(t *testing.T) {
			clustertest.ForAnyPolicy(t, func(t *testing.T, options clustertest.Options) { testRecreatedNode(t, options, tc.hasData) })
		})
	}
}

func testRecreatedNode(t *testing.T, options clustertest.Options, hasData bool) {
	c, driver, data := startAtHome(t, options, "100Gi", local([]int64{100}, []int64{99}))
	drain(c)
	expectReleased(c, "node-1")
	driver.Pause(true)
	c.DeleteNode("node-1")
	c.CreateNode("node-1", nil)
	if !hasData {
		driver.RemoveCopy(c.Volume("data-app-0").Spec.CSI.VolumeHandle, "node-1")
		driver.Resize("node-1", 0, -2<<30)
		c.WaitForCapacity(98 << 30)
	}
	c.CreatePod(app)
	c.ExpectNoRoom(app.Name, 2)
	data.expectUntouched(c)

	driver.Pause(false)
	if hasData {
		c.ExpectNode(app.Name, "node-1")
		expectAffinity(c, "node-1")
		data.expectUntouched(c)
		expectVolumes(c, driver, 1, 0)
		return
	}
	expectReleased(c)
	driver.Resize("node-1", 0, 2<<30)
	c.ExpectNode(app.Name, "node-1")
	expectAffinity(c, "node-1")
	expectVolumes(c, driver, 1, 0)
}

// TestTolerationPrefersHome: a pod that tolerates the cordon stays where its volume is,
// although another node has much more room, and nothing else to run.
func TestTolerationPrefersHome(t *testing.T) { clustertest.ForAnyPolicy(t, testTolerationPrefersHome) }

func testTolerationPrefersHome(t *testing.T, options clustertest.Options) {
	c, driver, data := startAtHome(t, options, "100Gi", local([]int64{100}, []int64{250}))
	drain(c)
	expectReleased(c, "node-1")
	c.CreatePod(clustertest.Pod{Name: "busy", NodeSelector: clustertest.OnNode("node-1"), With: func(pod *st.PodWrapper) {
		pod.Toleration(corev1.TaintNodeUnschedulable).Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "100"})
	}})
	c.ExpectNode("busy", "node-1")
	tolerating := app
	tolerating.With = func(pod *st.PodWrapper) { pod.Toleration(corev1.TaintNodeUnschedulable) }
	c.CreatePod(tolerating)
	c.ExpectNode(app.Name, "node-1")
	data.expectUntouched(c)
	expectReleased(c, "node-1")
	expectVolumes(c, driver, 1, 0)
}
