package rescheduling

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"capacityv2.internal/test-integration/clustertest"
)

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

// TestSchedulerRestart: a scheduler ends after it has selected another node for a
// claim, and before it has bound the pod. It takes the selection back. The next one
// sends the pod to a node with room, although one without looks better.
func TestSchedulerRestart(t *testing.T) { clustertest.ForEachPolicyInTurn(t, testSchedulerRestart) }

func testSchedulerRestart(t *testing.T, options clustertest.Options) {
	c, binding := startHolding(t, options, "node-2", false)
	createNodes(c, 3)
	driver := c.StartDriver(local([]int64{100}, []int64{100}, []int64{99}))
	startApp(c, "100Gi")
	data, rescheduled := observe(c, "data-app-0"), c.Rescheduled()
	drain(c)
	c.CreatePod(preferring(app, "node-3"))
	binding.Wait(c)
	c.StopScheduler()
	c.Eventually(func(context.Context) error {
		if node := c.Claim("data-app-0").Annotations[selectedNode]; node != "node-1" {
			return fmt.Errorf("the selected node of the claim is %s, want node-1", node)
		}
		return nil
	})
	placed, err := c.Placed(c)
	c.ExpectNoError(err, "list pods")
	if len(placed) != 0 {
		c.Fatalf("nodes of the pods: %v, want none", placed)
	}

	c.StartScheduler()
	c.ExpectNode(app.Name, "node-2")
	expectVolumes(c, driver, 0, 1, 0)
	expectAffinity(c, "data-app-0", "node-2")
	data.expect(c, "node-1", "node-2", "node-1", "node-2")
	if got := c.Rescheduled() - rescheduled; got != 2 {
		c.Errorf("%d claims were rescheduled, want 2: one by each scheduler", got)
	}
}

// TestSchedulerKilled: a scheduler ends between the selected node and the binding, and
// the room is gone when the next one starts. It must not take the selected node for the
// place of the volume.
func TestSchedulerKilled(t *testing.T) { clustertest.ForEachPolicy(t, testSchedulerKilled) }

func testSchedulerKilled(t *testing.T, options clustertest.Options) {
	c, binding := startHolding(t, options, "node-2", false)
	createNodes(c, 3)
	driver := c.StartDriver(local([]int64{100}, []int64{100}, []int64{99}))
	startApp(c, "100Gi")
	data := observe(c, "data-app-0")
	drain(c)
	c.CreatePod(app)
	binding.Wait(c)
	c.KillScheduler()
	driver.Resize(1, 0, -1<<30)
	driver.Resize(2, 0, 1<<30)

	c.StartScheduler()
	c.ExpectNode(app.Name, "node-3")
	data.expect(c, "node-1", "node-2", "node-3")
	expectVolumes(c, driver, 0, 0, 1)
}
