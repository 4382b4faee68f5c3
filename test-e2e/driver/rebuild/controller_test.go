package rebuild

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// TestLaggingInformer has a cache without a node that is there. It says that one should look, and not that it is gone.
func TestLaggingInformer(t *testing.T) {
	h := newHarness(t, "n1")
	h.stop()
	h.stop = func() {}
	h.controller.cached = func(_ context.Context, name string) (*corev1.Node, error) {
		return nil, apierrors.NewNotFound(corev1.Resource("nodes"), name)
	}
	pv, err := h.client.CoreV1().PersistentVolumes().Get(t.Context(), "pv", metav1.GetOptions{})
	if err == nil {
		err = h.controller.place(t.Context(), pv)
	}
	if err != nil {
		t.Error(err)
	}
	h.expect("n1")
	h.expectWrites(0)
}

// TestRefusedPatch has an API server that refuses each PATCH, as without MutablePVNodeAffinity.
func TestRefusedPatch(t *testing.T) {
	h := newHarness(t, "n1")
	var refused atomic.Int32
	h.client.PrependReactor("patch", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		refused.Add(1)
		return true, nil, apierrors.NewForbidden(corev1.Resource("persistentvolumes"), "pv", errors.New("immutable"))
	})
	h.cordon("n1")
	time.Sleep(4 * time.Second)
	if n := refused.Load(); n < 2 || n > 5 {
		t.Errorf("%d patches in 4 seconds; expected more time between them", n)
	}
}

// TestOtherEvents has changes of nodes that are none of a volume, and one of its node that says nothing new. No question is asked for them.
func TestOtherEvents(t *testing.T) {
	h := newHarness(t, "n1")
	h.cordon("n1")
	h.expect("unset; home n1=n1")
	h.send("n2")
	h.uncordon("n1")
	h.stays("unset; home n1=n1")
	time.Sleep(time.Second)
	h.client.ClearActions()
	for i := range 5 {
		h.patchNode("n1", fmt.Sprintf(`{"metadata":{"annotations":{"heartbeat":"%d"}}}`, i))
		h.patchNode("n3", fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, i%2 == 0))
		time.Sleep(600 * time.Millisecond)
	}
	for _, a := range h.client.Actions() {
		if a.GetVerb() == "get" {
			t.Errorf("asked for %s", a.GetResource().Resource)
		}
	}
}

// TestRunsThroughCordon has a pod that uses a volume at home all the time, and a claim that names another node: the driver
// had moved the volume.
func TestRunsThroughCordon(t *testing.T) {
	h := newHarness(t, "n2") // the claim was sent to n1
	h.run("n2")
	h.cordon("n2")
	h.expect("unset; home n2=n2")
	h.uncordon("n2")
	h.stays("n2")
}

// run has a pod with the claim run on a node.
func (h *harness) run(node string) {
	h.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: "default"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}, Spec: corev1.PodSpec{
		NodeName: node, Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}}},
	}}
	if _, err := h.client.CoreV1().Pods("default").Create(h.Context(), pod, metav1.CreateOptions{}); err != nil {
		h.Fatal(err)
	}
}

// TestNoSelectedNode has a claim that nobody has sent anywhere since the volume was released.
func TestNoSelectedNode(t *testing.T) {
	h := newHarness(t, "n2")
	h.cordon("n2")
	h.expect("unset; home n2=n2")
	h.patchClaim(`{"metadata":{"annotations":null}}`)
	h.uncordon("n2")
	h.stays("n2")
}
