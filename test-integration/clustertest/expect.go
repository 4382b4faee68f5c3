// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"capacityv2.internal/test-integration/modeldriver"
)

// Reasons of the scheduler for a node.
const (
	// NoRoom is that of a node without enough capacity.
	NoRoom = "node(s) did not have enough free storage"
	// Reserved is that of a node with enough capacity that a decision for another
	// pod has used.
	Reserved = "node(s) had storage capacity reserved by another pod"
	// Tainted is that of a node with a taint that the pod does not tolerate.
	Tainted = "node(s) had untolerated taint(s)"
	// VolumeElsewhere is that of a node that the node affinity of a volume excludes.
	VolumeElsewhere = "node(s) didn't match PersistentVolume's node affinity"
)

// VolumeInUse is the reason for a node without the volume that another pod uses on nodes.
func VolumeInUse(nodes string) string {
	return "node(s) didn't have the volume that another pod uses on " + nodes
}

// VolumeAwaited is the reason for a node while another pod waits for the volume on nodes.
func VolumeAwaited(nodes string) string {
	return "node(s) cannot take over a volume that another pod is waiting for on " + nodes
}

// RebuildDriver is the reason for a node without the data while no CSIDriver object says that the driver can rebuild the volume.
const RebuildDriver = "node(s) didn't have the data of a volume, and the CSIDriver object of its driver does not exist, or does not have volumeRebuilding"

// RebuildClass is the reason for a node while the class of a volume that has to be rebuilt does not exist, or is for another driver.
const RebuildClass = "node(s) could not be checked for free storage because the storage class of a volume to rebuild does not exist, or has another provisioner"

// VolumeAtHome is the reason for a node without a volume that can stay on nodes.
func VolumeAtHome(nodes string) string {
	return "node(s) didn't have the data of a volume, which is on " + nodes + ": its driver has to set the node affinity of the PersistentVolume again"
}

// Patience is for a machine that is busy. After the timeout of reservations (90 s), a pod that nothing has woken would have its node, too.
// Without the change, most tests wait in vain: it is shorter there.
var Patience = patience(os.Getenv(targetEnv))

func patience(target string) time.Duration {
	if target != targetPatched {
		return 20 * time.Second
	}
	return time.Minute
}

// Eventually waits until check returns nil, and fails the test with its last
// error if that takes too long. It checks less often the longer it waits: each check is work for the API server.
func (c *Cluster) Eventually(check func(ctx context.Context) error) {
	c.Helper()
	begin := time.Now()
	for pause := 20 * time.Millisecond; ; pause = min(pause*3/2, 200*time.Millisecond) {
		err := check(c)
		if err == nil {
			return
		}
		if time.Since(begin) > c.Patience {
			c.Fatalf("after %v: %v", c.Patience, err)
		}
		select {
		case <-time.After(pause):
		case <-c.Done():
			c.Fatalf("%v; last: %v", context.Cause(c), err)
		}
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

// Placed returns the nodes of the pods that have one, by the names of the pods.
func (c *Cluster) Placed(ctx context.Context) (map[string]string, error) {
	pods, err := c.Client().CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	placed := map[string]string{}
	for _, pod := range pods.Items {
		if pod.Spec.NodeName != "" {
			placed[pod.Name] = pod.Spec.NodeName
		}
	}
	return placed, nil
}

// WaitForPlaced waits until at least this number of pods have a node.
func (c *Cluster) WaitForPlaced(want int) {
	c.Helper()
	c.Eventually(func(ctx context.Context) error {
		placed, err := c.Placed(ctx)
		if err == nil && len(placed) < want {
			err = fmt.Errorf("%d pods have a node, want %d", len(placed), want)
		}
		return err
	})
}

// stays is for how long a pod that waits must go on waiting.
const stays = 300 * time.Millisecond

// Stays checks for a moment that check returns nil.
func (c *Cluster) Stays(check func(ctx context.Context) error) {
	c.Helper()
	for begin := time.Now(); time.Since(begin) < stays; time.Sleep(50 * time.Millisecond) {
		if err := check(c); err != nil {
			c.Fatalf("for %v: %v", time.Since(begin), err)
		}
	}
}

// ExpectNodeAfter waits until the pod has a node, which it may have only when a reservation that was made after begin is over.
// On a busy machine, that may be before the pod is tried, so nobody has to see that it waits.
func (c *Cluster) ExpectNodeAfter(begin time.Time, pod, node string) {
	c.Helper()
	c.ExpectNode(pod, node)
	// A reservation begins when its volume was created, which is known to the second.
	least := time.Duration(c.options.ReservationTimeout-1) * time.Second
	if took := time.Since(begin); took < least {
		c.Errorf("pod %s had its node after %v, want it after %v or later", pod, took, least)
	}
}

// ExpectNoFailures checks that no volume was asked for where there was no room.
func (c *Cluster) ExpectNoFailures(driver *modeldriver.Driver) {
	c.Helper()
	if n := driver.Failed(); n != 0 {
		c.Errorf("%d volumes were asked for where there was no room, want none", n)
	}
}

// ExpectNoRoom waits until the scheduler has rejected the pod because this number
// of nodes have no room for its volumes. Then nothing may happen to the pod, and
// nobody may have asked for a volume.
func (c *Cluster) ExpectNoRoom(pod string, nodes int) {
	c.Helper()
	c.ExpectReason(pod, nodes, NoRoom)
	c.Stays(func(ctx context.Context) error {
		return errors.Join(c.hasReason(ctx, pod, nodes, NoRoom), c.asksForNothing(ctx, pod))
	})
}

// ExpectReason waits until the scheduler has tried the pod on all nodes, and has
// rejected it for a reason that this number of them have.
func (c *Cluster) ExpectReason(pod string, nodes int, reason string) {
	c.Helper()
	c.Eventually(func(ctx context.Context) error { return c.hasReason(ctx, pod, nodes, reason) })
}

// HasReason returns an error if the scheduler has not tried the pod on all nodes, or
// has not rejected it for a reason that this number of them have.
func (c *Cluster) HasReason(pod string, nodes int, reason string) error {
	return c.hasReason(c, pod, nodes, reason)
}

func (c *Cluster) hasReason(ctx context.Context, pod string, nodes int, reason string) error {
	got, err := c.Client().CoreV1().Pods(c.Namespace).Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return err
	}
	list, err := c.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	all, want := fmt.Sprintf("0/%d nodes are available: ", len(list.Items)), fmt.Sprintf(" %d %s", nodes, reason)
	condition := scheduled(got)
	if got.Spec.NodeName != "" || condition.Reason != corev1.PodReasonUnschedulable || !strings.HasPrefix(condition.Message, all) || !strings.Contains(condition.Message, want) {
		return fmt.Errorf("pod %s is on node %q with PodScheduled=%s %s %q, want %q and the reason %q", pod, got.Spec.NodeName, condition.Status, condition.Reason, condition.Message, all, want)
	}
	return nil
}

// asksForNothing checks that no node is selected for the claims of a pod that have
// no volume.
func (c *Cluster) asksForNothing(ctx context.Context, pod string) error {
	got, err := c.Client().CoreV1().Pods(c.Namespace).Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, volume := range got.Spec.Volumes {
		name := pod + "-" + volume.Name
		if source := volume.PersistentVolumeClaim; source != nil {
			name = source.ClaimName
		} else if volume.Ephemeral == nil {
			continue
		}
		claim, err := c.Client().CoreV1().PersistentVolumeClaims(c.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if node := claim.Annotations[storagehelpers.AnnSelectedNode]; node != "" && claim.Spec.VolumeName == "" {
			return fmt.Errorf("node %s is selected for claim %s", node, name)
		}
	}
	return nil
}

func scheduled(pod *corev1.Pod) corev1.PodCondition {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			return condition
		}
	}
	return corev1.PodCondition{}
}

// Attempts returns how often the scheduler has tried a pod.
func (c *Cluster) Attempts() int {
	c.Helper()
	return c.counted("scheduler_schedule_attempts_total", "", "")
}

// Woken returns how many pods the scheduling queue has let go on because of events
// whose name has the prefix, such as storage.k8s.io/CSIStorageCapacity.
func (c *Cluster) Woken(prefix string) int {
	c.Helper()
	return c.counted("scheduler_queue_incoming_pods_total", "event", prefix)
}

// Batched returns for how many pods the scheduler has taken the node that it had
// found for a pod like it.
func (c *Cluster) Batched() int {
	c.Helper()
	return c.counted("scheduler_batch_attempts_total", "result", "hint_used")
}

// Rescheduled returns for how many bound claims the scheduler has selected another
// node.
func (c *Cluster) Rescheduled() int {
	c.Helper()
	return c.counted("scheduler_volume_binding_rescheduling_events_total", "", "")
}

// InFlight returns how many bytes of a storage class the scheduler has reserved.
func (c *Cluster) InFlight(class string) int {
	c.Helper()
	return c.counted("scheduler_volume_binding_capacity_in_flight_bytes", "storage_class", class)
}

// Released returns how many volumes of a driver are released.
func (c *Cluster) Released(driver string) int {
	c.Helper()
	return c.counted("scheduler_volume_released_volumes", "driver", driver)
}

// counted returns the sum of a counter or gauge over the values of a label with the prefix.
// No label is for a counter without labels, which is there before it counts.
func (c *Cluster) counted(metric, label, prefix string) int {
	c.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	c.ExpectNoError(err, "metrics")
	var sum float64
	found := label != ""
	for _, family := range families {
		if family.GetName() != metric {
			continue
		}
		found = true
		for _, m := range family.GetMetric() {
			if label == "" {
				sum += m.GetCounter().GetValue()
			}
			for _, pair := range m.GetLabel() {
				if pair.GetName() == label && strings.HasPrefix(pair.GetValue(), prefix) {
					sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
				}
			}
		}
	}
	if !found {
		c.Errorf("the scheduler has no metric %s", metric)
	}
	return int(sum)
}
