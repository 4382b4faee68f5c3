package api

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"capacityv2.internal/test-integration/modeldriver"
)

// TestStory2 checks the KEP's second story, with the manifest of the docs and a
// driver that publishes late: pods run as far as there is room, and no volume is
// asked for where there is none.
func TestStory2(t *testing.T) {
	requireNode(t)
	c := connect(t)
	class := "story-2-" + c.Suffix
	driver := c.startDriver(t, modeldriver.Config{
		Name: class + ".csi.example.com", Classes: []string{class},
		Segments:     []modeldriver.Segment{{Labels: map[string]string{corev1.LabelHostname: "node1"}, Pools: modeldriver.GiB(100)}},
		RefreshDelay: 2 * time.Second,
		HostPath:     "/tmp",
	})

	c.mustKubectl(t, c.readExample(t, "story-2.yaml", "story-2"), "apply", "-f", "-")
	eventually(t, 2*time.Minute, func() error {
		pods, err := c.CoreV1().Pods(c.Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready, rejected := 0, 0
		for i := range pods.Items {
			if isReady(&pods.Items[i]) {
				ready++
			} else if c.hasNoRoom(t.Context(), pods.Items[i].Name) == nil {
				rejected++
			}
		}
		if ready != 5 || rejected != 5 {
			return fmt.Errorf("%d pods are ready and %d have no room, want 5 and 5", ready, rejected)
		}
		return nil
	})
	if driver.Failed() > 0 {
		t.Errorf("%d volumes were asked for where there was no room, want none", driver.Failed())
	}
}

// startDriver starts a driver, and ends it with the test.
func (c *cluster) startDriver(t *testing.T, config modeldriver.Config) *modeldriver.Driver {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	driver, err := modeldriver.Start(ctx, c, config)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	c.cleanup(t, "driver", func(ctx context.Context) error { return modeldriver.Remove(ctx, c, config) })
	t.Cleanup(func() {
		cancel()
		driver.Wait()
	})
	t.Cleanup(func() { c.drainDriver(t, driver) })
	return driver
}

// drainDriver removes all pods and claims, and waits until the driver has removed
// their volumes.
func (c *cluster) drainDriver(t *testing.T, driver *modeldriver.Driver) {
	ctx := context.Background()
	options := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}
	for _, remove := range []func(context.Context, metav1.DeleteOptions, metav1.ListOptions) error{
		c.AppsV1().Deployments(c.Namespace).DeleteCollection,
		c.AppsV1().StatefulSets(c.Namespace).DeleteCollection,
		c.CoreV1().Pods(c.Namespace).DeleteCollection,
	} {
		if err := remove(ctx, options, metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
	}
	eventually(t, time.Minute, func() error {
		for segment, n := range driver.Volumes() {
			if n != 0 {
				return fmt.Errorf("%d volumes are left in segment %d", n, segment)
			}
		}
		volumes, err := c.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, v := range volumes.Items {
			if v.Spec.ClaimRef != nil && v.Spec.ClaimRef.Namespace == c.Namespace {
				return fmt.Errorf("volume %s is left", v.Name)
			}
		}
		return nil
	})
}

func isReady(pod *corev1.Pod) bool {
	for _, cond := range pod.Status.Conditions {
		if cond.Type == corev1.PodReady {
			return cond.Status == corev1.ConditionTrue
		}
	}
	return false
}
