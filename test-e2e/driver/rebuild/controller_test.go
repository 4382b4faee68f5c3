// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"capacityv2.internal/test-e2e/driver/apitest"
)

// harness is a controller that runs against a fake API server with three nodes and one volume.
type harness struct {
	*testing.T
	client  *apitest.Server
	stop    context.CancelFunc
	watches atomic.Int64
}

func newHarness(t *testing.T, volume string) *harness {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "claim", Namespace: "default", UID: "uid", Annotations: map[string]string{storagehelpers.AnnSelectedNode: "n1"}},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv"},
	}
	objects := []runtime.Object{claim, volumeOf(volume)}
	for _, name := range []string{"n1", "n2", "n3"} {
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid1"}})
	}
	h := &harness{T: t, client: apitest.New(objects...)}
	h.client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		w, err := h.client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		h.watches.Add(1)
		return true, w, err
	})
	h.restart()
	t.Cleanup(func() { h.stop() })
	return h
}

// restart ends the controller, if it runs, and starts a new one.
func (h *harness) restart() {
	h.Helper()
	if h.stop != nil {
		h.stop()
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.Context()))
	before := h.watches.Load()
	controller := NewController(API{named, h.client})
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(ctx) }()
	// The fake loses what happens between list and watch.
	for deadline := time.Now().Add(10 * time.Second); h.watches.Load() < before+3 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
	}
	h.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			h.Error(err)
		}
	}
}

func (h *harness) patchNode(name, patch string) {
	h.Helper()
	if _, err := h.client.CoreV1().Nodes().Patch(h.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		h.Fatal(err)
	}
}

func (h *harness) cordon(name string)   { h.patchNode(name, `{"spec":{"unschedulable":true}}`) }
func (h *harness) uncordon(name string) { h.patchNode(name, `{"spec":{"unschedulable":null}}`) }

// send writes what the scheduler writes.
func (h *harness) send(node string) {
	h.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, storagehelpers.AnnSelectedNode, node)
	if _, err := h.client.CoreV1().PersistentVolumeClaims("default").Patch(h.Context(), "claim", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		h.Fatal(err)
	}
}

// run has a pod with the claim on a node.
func (h *harness) run(node string, phase corev1.PodPhase) {
	h.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: "default"},
		Spec: corev1.PodSpec{NodeName: node, Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"},
		}}}},
		Status: corev1.PodStatus{Phase: phase},
	}
	_ = h.client.CoreV1().Pods("default").Delete(h.Context(), "pod", metav1.DeleteOptions{})
	if _, err := h.client.CoreV1().Pods("default").Create(h.Context(), pod, metav1.CreateOptions{}); err != nil {
		h.Fatal(err)
	}
}

// node does what a node does, with what it reads now.
func (h *harness) node(do func(v Volume) *Change) {
	h.Helper()
	api := API{named, h.client}
	v, err := api.Volume(h.Context(), "pv", "pv@n1")
	if err == nil {
		_, err = api.Patch(h.Context(), v, do(v))
	}
	if err != nil {
		h.Fatal(err)
	}
}

func (h *harness) expect(want string) {
	h.Helper()
	got := ""
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		pv, err := h.client.CoreV1().PersistentVolumes().Get(h.Context(), "pv", metav1.GetOptions{})
		if err != nil {
			h.Fatal(err)
		}
		if got = textOf(pv); got == want {
			return
		}
	}
	h.Errorf("PersistentVolume: %q; expected %q", got, want)
}

// TestTerminating releases a volume whose PersistentVolume was deleted by hand: it stays while the claim is there.
func TestTerminating(t *testing.T) {
	h := newHarness(t, "n1")
	pv, err := h.client.CoreV1().PersistentVolumes().Get(t.Context(), "pv", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pv.Finalizers, pv.DeletionTimestamp = []string{"kubernetes.io/pv-protection"}, ptr.To(metav1.Now())
	if _, err := h.client.CoreV1().PersistentVolumes().Update(t.Context(), pv, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	h.cordon("n1")
	h.expect("released n1=uid1; released-from n1")
	h.uncordon("n1")
	h.expect("n1; released-from n1")
}

// TestDrain moves a volume to another node, with a controller that is killed after each step.
func TestDrain(t *testing.T) {
	h := newHarness(t, "n1")
	h.cordon("n1")
	h.expect("released n1=uid1; released-from n1")
	h.send("n2")
	h.restart()
	h.node(func(Volume) *Change { return named.Begin("n2", "x") })
	h.node(func(v Volume) *Change { return named.Complete(v, "n2", "x") })
	h.restart()
	h.expect("released n1=uid1; begun n2/x; copied n2/x; released-from n1") // no pod waits for it
	h.run("n2", corev1.PodPending)
	h.expect("n2; copy x; released-from n1")
}

// TestUncordon puts a volume back, also if its pod comes to run on its home only after that.
func TestUncordon(t *testing.T) {
	h := newHarness(t, "n1")
	h.cordon("n1")
	h.expect("released n1=uid1; released-from n1")
	h.send("n2")
	h.uncordon("n1")
	time.Sleep(50 * time.Millisecond)
	h.expect("released n1=uid1; released-from n1")
	h.run("n1", corev1.PodRunning)
	h.expect("n1; released-from n1")
}

// TestSentElsewhere sends the claim elsewhere at the moment at which an affinity is set.
func TestSentElsewhere(t *testing.T) {
	h := newHarness(t, "n1")
	h.cordon("n1")
	h.expect("released n1=uid1; released-from n1")
	sent := false
	h.client.Before = func(patch string, _ *corev1.PersistentVolume) error {
		if sent || !strings.Contains(patch, `"In"`) {
			return nil
		}
		sent = true
		claims := corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
		object, err := h.client.Tracker().Get(claims, "default", "claim")
		if err != nil {
			return err
		}
		claim := object.(*corev1.PersistentVolumeClaim).DeepCopy()
		claim.Annotations[storagehelpers.AnnSelectedNode] = "n3"
		return h.client.Tracker().Update(claims, claim, "default")
	}
	before := h.client.Writes.Load()
	h.uncordon("n1")
	h.expect("released n1=uid1; released-from n1")
	for deadline := time.Now().Add(10 * time.Second); h.client.Writes.Load() < before+2 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
	}
	h.expect("released n1=uid1; released-from n1") // set, and taken back
	if got := h.client.Writes.Load(); got != before+2 {
		t.Errorf("%d writes; expected two", got-before)
	}
}

// TestUnconfirmed has a new controller find what one has left that was killed between both looks.
func TestUnconfirmed(t *testing.T) {
	newHarness(t, "n1; unconfirmed n1=uid1").expect("n1")
	newHarness(t, "n3; unconfirmed n2=uid1; begun n3/x; copied n3/x").expect("released n2=uid1")
}

// TestOff takes away that a node uses a volume that was moved by hand, when the node is out of service.
func TestOff(t *testing.T) {
	h := newHarness(t, "n2; in-use n1/first; begun n3/x")
	h.patchNode("n1", fmt.Sprintf(`{"spec":{"taints":[{"key":%q,"effect":"NoExecute"}]}}`, corev1.TaintNodeOutOfService))
	h.expect("n2")
}

// TestConflict has one of two changes fail that were made of the same object.
func TestConflict(t *testing.T) {
	h := newHarness(t, "n1")
	api := API{named, h.client}
	v, err := api.Volume(t.Context(), "pv", "pv@n1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.Patch(t.Context(), v, named.Use(v, "n1")); err != nil {
		t.Error(err)
	}
	if _, err := api.Patch(t.Context(), v, named.Begin("n2", "x")); !apierrors.IsConflict(err) {
		t.Errorf("got %v; expected a conflict", err)
	}
	if v, err := api.Volume(t.Context(), "pv", "other@n1"); err != nil || v.PV != nil {
		t.Errorf("a volume of another handle: %v, %v; expected none", v, err)
	}
}
