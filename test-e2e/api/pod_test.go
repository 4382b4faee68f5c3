package api

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// requireNode skips the test on a cluster that has no node by intention.
func requireNode(t *testing.T) {
	t.Helper()
	if os.Getenv("CAPACITYV2_CLUSTER_MODE") == "control-plane" {
		t.Skip("this cluster has no node (CLUSTER_MODE=control-plane)")
	}
}

// pauseImage returns the pause image that the first node has: nothing is pulled.
func (c *cluster) pauseImage(t *testing.T) string {
	t.Helper()
	nodes, err := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) == 0 {
		t.Fatal("the cluster has no node")
	}
	for _, image := range nodes.Items[0].Status.Images {
		for _, name := range image.Names {
			if strings.Contains(name, "/pause:") {
				return name
			}
		}
	}
	t.Fatalf("node %s has no pause image", nodes.Items[0].Name)
	return ""
}

// createPod creates a pod of the pause image, with the claims as its volumes.
func (c *cluster) createPod(t *testing.T, image string, claims ...string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "pause-"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "pause", Image: image, ImagePullPolicy: corev1.PullNever}}},
	}
	for _, claim := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	}
	pod, err := c.CoreV1().Pods(c.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.removePod(t, pod.Name)
	return pod
}

// removePod removes a pod when the test has ended, at once: the namespace's end
// would wait for the usual grace period.
func (c *cluster) removePod(t *testing.T, name string) {
	c.cleanup(t, "pod", func(ctx context.Context) error {
		return c.CoreV1().Pods(c.Namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	})
}

// expectReady waits until the pod runs.
func (c *cluster) expectReady(t *testing.T, pod string) {
	t.Helper()
	eventually(t, time.Minute, func() error {
		cond, err := c.condition(t.Context(), pod, corev1.PodReady)
		if err == nil && cond.Status != corev1.ConditionTrue {
			err = fmt.Errorf("Ready is %s: %s %s", cond.Status, cond.Reason, cond.Message)
		}
		return err
	})
}

// condition returns the condition of the pod as it is now.
func (c *cluster) condition(ctx context.Context, pod string, kind corev1.PodConditionType) (corev1.PodCondition, error) {
	got, err := c.CoreV1().Pods(c.Namespace).Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return corev1.PodCondition{}, err
	}
	for _, cond := range got.Status.Conditions {
		if cond.Type == kind {
			return cond, nil
		}
	}
	return corev1.PodCondition{}, fmt.Errorf("pod %s has no condition %s yet", pod, kind)
}

// TestPodRuns runs a pod on the node.
func TestPodRuns(t *testing.T) {
	requireNode(t)
	c := connect(t)
	pod := c.createPod(t, c.pauseImage(t))
	c.expectReady(t, pod.Name)
}

// TestPodWithoutRoom checks that the scheduler sees the example's capacity: a
// claim larger than the largest pool fits nowhere, and the pod says why.
func TestPodWithoutRoom(t *testing.T) {
	requireNode(t)
	c := connect(t)
	image := c.pauseImage(t)
	c.applyExample(t)

	pod := c.createPod(t, image, c.createClaims(t, "too-large", "121Gi")...)
	c.expectNoRoom(t, pod.Name)
}

// expectNoRoom waits until the scheduler has rejected the pod for its capacity,
// and not for anything else.
func (c *cluster) expectNoRoom(t *testing.T, pod string) {
	t.Helper()
	eventually(t, time.Minute, func() error { return c.hasNoRoom(t.Context(), pod) })
}

// hasNoRoom returns an error if the scheduler has not rejected the pod for its
// capacity.
func (c *cluster) hasNoRoom(ctx context.Context, pod string) error {
	const want = "node(s) did not have enough free storage"
	cond, err := c.condition(ctx, pod, corev1.PodScheduled)
	if err == nil && (cond.Status != corev1.ConditionFalse || cond.Reason != corev1.PodReasonUnschedulable || !strings.Contains(cond.Message, want)) {
		err = fmt.Errorf("PodScheduled is %s: %s %q, want %q", cond.Status, cond.Reason, cond.Message, want)
	}
	return err
}
