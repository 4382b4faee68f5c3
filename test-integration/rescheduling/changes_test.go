// SPDX-License-Identifier: Apache-2.0

package rescheduling

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"capacityv2.internal/test-integration/clustertest"
)

// TestSecondScheduler: while a pod is about to be bound, another scheduler sends the claim
// elsewhere, for a pod of its own. The first decision is made again, and takes nothing away.
func TestSecondScheduler(t *testing.T) { clustertest.ForAnyPolicy(t, testSecondScheduler) }

func testSecondScheduler(t *testing.T, options clustertest.Options) {
	c, binding := startHolding(t, options, true)
	createNodes(c, 3)
	driver := c.StartDriver(local([]int64{100}, []int64{100}, []int64{100}))
	startApp(c, "100Gi")
	data := observe(c, "data-app-0")
	drain(c)
	c.CreatePod(preferring(app, "node-2"))
	binding.Wait(c)

	driver.Pause(true)
	send(c, "node-3")
	c.CreatePod(clustertest.Pod{Name: "other", Claims: app.Claims, With: func(pod *st.PodWrapper) { pod.Node("node-3") }})
	close(binding.GoOn)
	c.ExpectReason(app.Name, 2, clustertest.VolumeAwaited("node-3"))

	driver.Pause(false)
	c.ExpectNode(app.Name, "node-3")
	data.expect(c, "node-1", "node-3")
	expectAffinity(c, "node-3")
	expectVolumes(c, driver, 0, 0, 1)
}

// TestFailedBindingBeforeRebuild: binding a pod fails after another node was selected
// for its claim, and before the driver is asked to rebuild the volume there. The node
// that the pod would rather use has no room.
func TestFailedBindingBeforeRebuild(t *testing.T) {
	clustertest.ForAnyPolicy(t, testFailedBindingBeforeRebuild)
}

func testFailedBindingBeforeRebuild(t *testing.T, options clustertest.Options) {
	c, binding := startHolding(t, options, false)
	binding.Fail = errors.New("fails once")
	createNodes(c, 3)
	driver := c.StartDriver(local([]int64{100}, []int64{100}, []int64{99}))
	startApp(c, "100Gi")
	data := observe(c, "data-app-0")
	drain(c)
	c.CreatePod(preferring(app, "node-3"))
	binding.Wait(c)
	data.expect(c, "node-1", "node-2")

	close(binding.GoOn)
	c.ExpectNode(app.Name, "node-2")
	data.expect(c, "node-1", "node-2")
	expectVolumes(c, driver, 0, 1, 0)
}

// TestSchedulerKilled: a scheduler ends between the selected node and the binding, and
// the room is gone when the next one starts. It must not take the selected node for the
// place of the volume.
func TestSchedulerKilled(t *testing.T) { clustertest.ForAnyPolicy(t, testSchedulerKilled) }

func testSchedulerKilled(t *testing.T, options clustertest.Options) {
	c, binding := startHolding(t, options, false)
	createNodes(c, 3)
	driver := c.StartDriver(local([]int64{100}, []int64{100}, []int64{99}))
	startApp(c, "100Gi")
	data := observe(c, "data-app-0")
	drain(c)
	c.CreatePod(app)
	binding.Wait(c)
	driver.Resize("node-2", 0, -2<<30)
	c.WaitForCapacity(98 << 30)
	c.KillScheduler()
	driver.Resize("node-3", 0, 1<<30)

	c.StartScheduler()
	c.ExpectNode(app.Name, "node-3")
	data.expect(c, "node-1", "node-2", "node-3")
	expectVolumes(c, driver, 0, 0, 1)
}

// preferring returns the same pod, which would rather go to a node.
func preferring(pod clustertest.Pod, node string) clustertest.Pod {
	pod.With = func(pod *st.PodWrapper) {
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: corev1.NodeSelectorTerm{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: clustertest.NodeLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}},
		}}
	}
	return pod
}
