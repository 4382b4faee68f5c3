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

// TestPodRuns runs a pod on the node, with an image that it has: nothing is pulled.
func TestPodRuns(t *testing.T) {
	requireNode(t)
	c := connect(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "pause-"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "pause", Image: c.pauseImage(t), ImagePullPolicy: corev1.PullNever}}},
	}
	pod, err := c.CoreV1().Pods(c.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// At once: the namespace's end would wait for the usual grace period.
	c.cleanup(t, "pod", func(ctx context.Context) error {
		return c.CoreV1().Pods(c.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	})
	c.expectReady(t, pod.Name)
}

// pauseImage returns the pause image that the first node has.
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

// expectReady waits until the pod runs, and returns it.
func (c *cluster) expectReady(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	eventually(t, time.Minute, func() (err error) {
		pod, err = c.CoreV1().Pods(c.Namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && !isReady(pod) {
			err = fmt.Errorf("pod %s is not ready: %v", name, pod.Status.Conditions)
		}
		return err
	})
	return pod
}

func isReady(pod *corev1.Pod) bool {
	for _, cond := range pod.Status.Conditions {
		if cond.Type == corev1.PodReady {
			return cond.Status == corev1.ConditionTrue
		}
	}
	return false
}
