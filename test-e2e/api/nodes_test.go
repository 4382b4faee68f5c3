package api

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// requireNodes skips the test on a cluster that has less than two nodes by
// intention.
func requireNodes(t *testing.T) {
	t.Helper()
	requireNode(t)
	if os.Getenv("CAPACITYV2_CLUSTER_MODE") == "host" {
		t.Skip("this cluster has one node (CONTAINER_RUNTIME_ENDPOINT)")
	}
}

// firstNodes returns the names of so many nodes.
func (c *cluster) firstNodes(t *testing.T, count int) []string {
	t.Helper()
	nodes, err := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) < count {
		t.Fatalf("the cluster has %d node(s); expected: %d; run: make down, then make e2e", len(nodes.Items), count)
	}
	var names []string
	for i := range count {
		names = append(names, nodes.Items[i].Name)
	}
	return names
}

// setSchedulable undoes a cordon.
func (c *cluster) setSchedulable(ctx context.Context, node string) error {
	_, err := c.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(`{"spec":{"unschedulable":null}}`), metav1.PatchOptions{})
	return err
}

// expectReadyOn waits until the pod runs on the node.
func (c *cluster) expectReadyOn(t *testing.T, name, node string) {
	t.Helper()
	eventually(t, time.Minute, func() error {
		pod, err := c.CoreV1().Pods(c.Namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && (pod.Spec.NodeName != node || !isReady(pod) || pod.DeletionTimestamp != nil) {
			err = fmt.Errorf("pod %s on %q is %s, ready: %v, want it ready on %s", name, pod.Spec.NodeName, pod.Status.Phase, isReady(pod), node)
		}
		return err
	})
}

// expectEvent waits for the event of an object, and fails the test if there is
// another one.
func (c *cluster) expectEvent(t *testing.T, reason, kind, name string) {
	t.Helper()
	eventually(t, time.Minute, func() error {
		events, err := c.CoreV1().Events(c.Namespace).List(t.Context(), metav1.ListOptions{
			FieldSelector: fmt.Sprintf("reason=%s,involvedObject.kind=%s,involvedObject.name=%s", reason, kind, name)})
		if err == nil && len(events.Items) != 1 {
			err = fmt.Errorf("%d events %s for %s %s, want one: %v", len(events.Items), reason, kind, name, events.Items)
		}
		return err
	})
}

// watched is an annotation that ends a watch, when all before it has been seen.
const watched = "example.com/watched"

// watchBound watches a bound claim. The returned function fails the test if the
// claim was not bound to the same volume all the time, and returns the volume.
func (c *cluster) watchBound(t *testing.T, name string) func() string {
	t.Helper()
	claims := c.CoreV1().PersistentVolumeClaims(c.Namespace)
	first, err := claims.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := claims.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: first.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan []string, 1)
	go func() {
		defer w.Stop()
		var wrong []string
		for event := range w.ResultChan() {
			claim, ok := event.Object.(*corev1.PersistentVolumeClaim)
			if !ok || claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName != first.Spec.VolumeName || claim.UID != first.UID {
				wrong = append(wrong, fmt.Sprintf("%s %v", event.Type, event.Object))
			}
			if ok && claim.Annotations[watched] != "" {
				ended <- wrong
				return
			}
		}
		ended <- append(wrong, "the watch has ended by itself")
	}()
	return func() string {
		t.Helper()
		c.mustKubectl(t, "", "annotate", "persistentvolumeclaim", name, watched+"=yes")
		if wrong := <-ended; first.Status.Phase != corev1.ClaimBound || len(wrong) > 0 {
			t.Errorf("claim %s began as %s, and was not bound to %s all the time: %q", name, first.Status.Phase, first.Spec.VolumeName, wrong)
		}
		return first.Spec.VolumeName
	}
}
