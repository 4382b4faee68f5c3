// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// createPriorityClasses creates classes from their values.
func createPriorityClasses(c *clustertest.Cluster, values map[string]int32) {
	c.Helper()
	for name, value := range values {
		_, err := c.Client().SchedulingV1().PriorityClasses().Create(c,
			&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}, metav1.CreateOptions{})
		c.ExpectNoError(err, "create priority class")
		// Admission has its own informer, which may still have the class of the test before.
		c.Eventually(func(ctx context.Context) error {
			pod := st.MakePod().Name("pod").Namespace(c.Namespace).Container("pause").Obj()
			pod.Spec.PriorityClassName = name
			got, err := c.Client().CoreV1().Pods(c.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err == nil && *got.Spec.Priority != value {
				err = fmt.Errorf("a pod of class %s gets priority %d, want %d", name, *got.Spec.Priority, value)
			}
			return err
		})
	}
}

func withPriority(class string, more func(*st.PodWrapper)) func(*st.PodWrapper) {
	return func(pod *st.PodWrapper) {
		pod.Spec.PriorityClassName = class
		more(pod)
	}
}

func withCPU(cpu string) func(*st.PodWrapper) {
	return func(pod *st.PodWrapper) { pod.Req(map[corev1.ResourceName]string{corev1.ResourceCPU: cpu}) }
}

// expectSpared checks that nobody has preempted the pod.
func expectSpared(c *clustertest.Cluster, name string) {
	c.Helper()
	pod, err := c.Client().CoreV1().Pods(c.Namespace).Get(c, name, metav1.GetOptions{})
	c.ExpectNoError(err, "get pod")
	if pod.DeletionTimestamp != nil {
		c.Errorf("pod %s was preempted", name)
	}
}

// expectStaysSpared checks for a moment that nobody preempts the pod.
func expectStaysSpared(c *clustertest.Cluster, name string) {
	c.Helper()
	c.Stays(func(ctx context.Context) error {
		pod, err := c.Client().CoreV1().Pods(c.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && pod.DeletionTimestamp != nil {
			err = fmt.Errorf("pod %s was preempted", name)
		}
		return err
	})
}

// waitForPreempted waits until the pod is asked to end. Without a kubelet, it does
// not until the test deletes it.
func waitForPreempted(c *clustertest.Cluster, name string) {
	c.Helper()
	c.Eventually(func(ctx context.Context) error {
		pod, err := c.Client().CoreV1().Pods(c.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && pod.DeletionTimestamp == nil {
			err = fmt.Errorf("pod %s was not preempted", name)
		}
		return err
	})
}

// expectNominated waits until the scheduler has nominated the node for the pod.
func expectNominated(c *clustertest.Cluster, name, node string) {
	c.Helper()
	c.Eventually(func(ctx context.Context) error {
		pod, err := c.Client().CoreV1().Pods(c.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && pod.Status.NominatedNodeName != node {
			err = fmt.Errorf("node %q is nominated for pod %s, want %q", pod.Status.NominatedNodeName, name, node)
		}
		return err
	})
}

// startNomination starts a control plane in which a pod has preempted another one
// on node-1. Before that has ended, a decision uses the capacity of the node, and
// the scheduler has tried the pod again.
func startNomination(t *testing.T, options clustertest.Options) (*clustertest.Cluster, *modeldriver.Driver) {
	t.Helper()
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(2)
	driver := c.StartDriver(unpublished([]int64{100, 120}, []int64{100, 120}))
	createPriorityClasses(c, map[string]int32{"low": 1, "middle": 10, "high": 100})

	// The affinity of pods is checked after volumes, so the reservation is the
	// first thing that the scheduler finds out about the nominated node.
	const role = "role"
	for node, priority := range map[string]string{"node-1": "low", "node-2": "middle"} {
		victim := "victim-on-" + node
		c.CreatePod(clustertest.Pod{Name: victim, NodeSelector: clustertest.OnNode(node), With: withPriority(priority, func(pod *st.PodWrapper) {
			pod.Label(role, "victim")
		})})
		c.ExpectNode(victim, node)
	}
	c.CreatePod(clustertest.Pod{Name: "preemptor", Class: class, Sizes: []string{"110Gi"}, With: withPriority("high", func(pod *st.PodWrapper) {
		pod.PodAntiAffinityIn(role, clustertest.NodeLabel, []string{"victim"}, st.PodAntiAffinityWithRequiredReq)
	})})
	waitForPreempted(c, "victim-on-node-1")
	expectNominated(c, "preemptor", "node-1")

	c.CreatePod(clustertest.Pod{Name: "owner", Class: class, Sizes: []string{"60Gi"}, NodeSelector: clustertest.OnNode("node-1")})
	c.ExpectNode("owner", "node-1")
	// Makes the scheduler try again.
	c.CreateNode("node-without-storage", nil)
	c.ExpectNoRoom("preemptor", 1)
	c.ExpectReason("preemptor", 1, clustertest.Reserved)
	return c, driver
}

// TestNominatedNodeGetsReserved: a pod waits for the capacity of its nominated node,
// and does not preempt on another node.
func TestNominatedNodeGetsReserved(t *testing.T) {
	clustertest.ForAnyPolicy(t, testNominatedNodeGetsReserved)
}

func testNominatedNodeGetsReserved(t *testing.T, options clustertest.Options) {
	c, driver := startNomination(t, options)
	expectSpared(c, "victim-on-node-2")
	expectNominated(c, "preemptor", "node-1")

	driver.Publish()
	c.ExpectReason("preemptor", 2, "node(s) didn't match pod anti-affinity rules")
	c.DeletePod(clustertest.Pod{Name: "victim-on-node-1"})
	c.ExpectNode("preemptor", "node-1")
	expectSpared(c, "victim-on-node-2")
	c.ExpectNoFailures(driver)
}

// TestPreemptionAfterReservation: no pod has to go for one that has to wait for capacity anyway. When the capacity is
// refreshed, one has to.
func TestPreemptionAfterReservation(t *testing.T) {
	clustertest.ForAnyPolicy(t, testPreemptionAfterReservation)
}

func testPreemptionAfterReservation(t *testing.T, options clustertest.Options) {
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(1)
	driver := c.StartDriver(unpublished([]int64{100, 120}))
	createPriorityClasses(c, map[string]int32{"low": 1, "high": 100})

	victim := clustertest.Pod{Name: "victim", With: withPriority("low", withCPU("600"))}
	c.CreatePod(victim)
	c.ExpectNode("victim", "node-1")
	c.CreatePod(clustertest.Pod{Name: "owner", Class: class, Sizes: []string{"60Gi"}})
	c.ExpectNode("owner", "node-1")
	c.CreatePod(clustertest.Pod{Name: "preemptor", Class: class, Sizes: []string{"110Gi"}, With: withPriority("high", withCPU("600"))})
	c.ExpectReason("preemptor", 1, "Insufficient cpu")
	// The attempt to preempt was before the condition was written.
	expectStaysSpared(c, "victim")

	driver.Publish()
	waitForPreempted(c, "victim")
	c.DeletePod(victim)
	c.ExpectNode("preemptor", "node-1")
	c.ExpectNoFailures(driver)
}

// TestPreemptionBesideReservation: a node that lacks nothing but capacity that is reserved does not keep a pod from preempting on
// another one, and nobody has to go for it.
func TestPreemptionBesideReservation(t *testing.T) {
	clustertest.ForAnyPolicy(t, testPreemptionBesideReservation)
}

func testPreemptionBesideReservation(t *testing.T, options clustertest.Options) {
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(2)
	driver := c.StartDriver(unpublished([]int64{100}, []int64{100}))
	createPriorityClasses(c, map[string]int32{"low": 1, "middle": 2, "high": 100})
	// Without the reservation, the pod with the lowest priority would have to go.
	for node, priority := range map[string]string{"node-1": "low", "node-2": "middle"} {
		c.CreatePod(clustertest.Pod{Name: "victim-on-" + node, NodeSelector: clustertest.OnNode(node), With: withPriority(priority, withCPU("600"))})
		c.ExpectNode("victim-on-"+node, node)
	}
	c.CreatePod(clustertest.Pod{Name: "owner", Class: class, Sizes: []string{"60Gi"}, NodeSelector: clustertest.OnNode("node-1")})
	c.ExpectNode("owner", "node-1")

	c.CreatePod(clustertest.Pod{Name: "preemptor", Class: class, Sizes: []string{"60Gi"}, With: withPriority("high", withCPU("600"))})
	waitForPreempted(c, "victim-on-node-2")
	expectSpared(c, "victim-on-node-1")
	c.DeletePod(clustertest.Pod{Name: "victim-on-node-2"})
	c.ExpectNode("preemptor", "node-2")
	expectSpared(c, "victim-on-node-1")
	c.ExpectNoFailures(driver)
}
