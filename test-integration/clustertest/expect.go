package clustertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
)

// Reasons of the scheduler for a node.
const (
	// NoRoom is that of a node without enough capacity.
	NoRoom = "node(s) did not have enough free storage"
	// Reserved is that of a node with enough capacity that a decision for another
	// pod has used.
	Reserved = "node(s) had storage capacity reserved by another pod"
)

// Eventually waits until check returns nil, and fails the test with its last
// error if that takes too long.
func (c *Cluster) Eventually(check func(ctx context.Context) error) {
	c.Helper()
	var last error
	err := wait.PollUntilContextTimeout(c, 20*time.Millisecond, wait.ForeverTestTimeout, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		c.Fatalf("%v; last: %v", err, last)
	}
}

// ExpectNode waits until the pod has a node, and returns its name. It fails the
// test if it is none of those that are wanted; none are wanted if any will do.
func (c *Cluster) ExpectNode(pod string, want ...string) string {
	c.Helper()
	var node string
	c.Eventually(func(ctx context.Context) error {
		got, err := c.Client().CoreV1().Pods(c.Namespace).Get(ctx, pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if node = got.Spec.NodeName; node == "" {
			return fmt.Errorf("pod %s has no node: %s", pod, scheduled(got).Message)
		}
		return nil
	})
	if len(want) > 0 && !slices.Contains(want, node) {
		c.Fatalf("pod %s is on %s, want %v", pod, node, want)
	}
	return node
}

// ExpectNoRoom waits until the scheduler has rejected the pod because this number
// of nodes have no room for its volumes.
func (c *Cluster) ExpectNoRoom(pod string, nodes int) {
	c.Helper()
	c.ExpectReason(pod, nodes, NoRoom)
}

// ExpectReason waits until the scheduler has rejected the pod for a reason that
// this number of nodes have.
func (c *Cluster) ExpectReason(pod string, nodes int, reason string) {
	c.Helper()
	want := fmt.Sprintf("%d %s", nodes, reason)
	c.Eventually(func(ctx context.Context) error {
		got, err := c.Client().CoreV1().Pods(c.Namespace).Get(ctx, pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		condition := scheduled(got)
		if condition.Reason != corev1.PodReasonUnschedulable || !strings.Contains(condition.Message, want) {
			return fmt.Errorf("pod %s is on node %q with PodScheduled=%s %s %q, want the reason %q", pod, got.Spec.NodeName, condition.Status, condition.Reason, condition.Message, want)
		}
		return nil
	})
}

func scheduled(pod *corev1.Pod) corev1.PodCondition {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			return condition
		}
	}
	return corev1.PodCondition{}
}

// Woken returns how many pods the scheduling queue has let go on because of events
// whose name has the prefix, such as storage.k8s.io/CSIStorageCapacity.
func (c *Cluster) Woken(prefix string) int {
	c.Helper()
	const metric = "scheduler_queue_incoming_pods_total"
	byEvent, err := testutil.GetCounterValuesFromGatherer(legacyregistry.DefaultGatherer, metric, nil, "event")
	c.ExpectNoError(err, metric)
	var sum float64
	for event, n := range byEvent {
		if strings.HasPrefix(event, prefix) {
			sum += n
		}
	}
	return int(sum)
}
