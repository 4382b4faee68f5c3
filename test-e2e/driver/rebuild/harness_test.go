package rebuild

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"capacityv2.internal/test-e2e/driver/pool"
	"capacityv2.internal/test-e2e/driver/volume"
)

const (
	driver = "reference.example.com"
	key    = "topology.example.com/node"
)

// harness is a controller that runs against a fake API server with three nodes and one
// volume.
type harness struct {
	*testing.T
	client     *fake.Clientset
	controller *Controller
	stop       context.CancelFunc
	version    atomic.Int64
	patches    []string // of the volume, those that were not refused
	watches    atomic.Int64
}

func newHarness(t *testing.T, copies ...string) *harness {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "claim", Namespace: "default", UID: "uid", Annotations: map[string]string{storagehelpers.AnnSelectedNode: "n1"}},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv"},
	}
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv", ResourceVersion: "0"},
		Spec: corev1.PersistentVolumeSpec{
			ClaimRef:               &corev1.ObjectReference{Namespace: "default", Name: "claim", UID: "uid"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "v"}},
			NodeAffinity:           &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{}},
		},
	}
	for _, node := range copies { // as external-provisioner writes it
		pv.Spec.NodeAffinity.Required.NodeSelectorTerms = append(pv.Spec.NodeAffinity.Required.NodeSelectorTerms, corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		})
	}
	objects := []runtime.Object{claim, pv}
	for _, name := range []string{"n1", "n2", "n3"} {
		objects = append(objects, node(name, name+"-uid"))
	}
	h := &harness{T: t, client: fake.NewClientset(objects...)}
	h.client.PrependReactor("patch", "persistentvolumes", h.patchVolume)
	h.client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		w, err := h.client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		h.watches.Add(1)
		return true, w, err
	})
	h.restart()
	t.Cleanup(func() { h.stop() })
	return h
}

func node(name, uid string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
}

// patchVolume patches as an API server does, which compares versions. The fake does not.
func (h *harness) patchVolume(action clienttesting.Action) (bool, runtime.Object, error) {
	patch := action.(clienttesting.PatchAction)
	object, err := h.client.Tracker().Get(patch.GetResource(), "", patch.GetName())
	if err != nil {
		return true, nil, err
	}
	before := object.(*corev1.PersistentVolume)
	var wanted metav1.PartialObjectMetadata
	if err := json.Unmarshal(patch.GetPatch(), &wanted); err != nil {
		return true, nil, err
	}
	if wanted.ResourceVersion != "" && wanted.ResourceVersion != before.ResourceVersion {
		return true, nil, apierrors.NewConflict(patch.GetResource().GroupResource(), patch.GetName(), errors.New("changed since it was read"))
	}
	data, err := json.Marshal(before)
	if err != nil {
		return true, nil, err
	}
	if data, err = jsonpatch.MergePatch(data, patch.GetPatch()); err != nil {
		return true, nil, err
	}
	after := &corev1.PersistentVolume{}
	if err := json.Unmarshal(data, after); err != nil {
		return true, nil, err
	}
	after.ResourceVersion = fmt.Sprint(h.version.Add(1))
	h.patches = append(h.patches, string(patch.GetPatch()))
	return true, after, h.client.Tracker().Update(patch.GetResource(), after, "")
}

// restart ends the controller, if it runs, and starts a new one.
func (h *harness) restart() {
	h.Helper()
	if h.stop != nil {
		h.stop()
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.Context()))
	before := h.watches.Load()
	controller := New(h.client, driver, key)
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(ctx) }()
	// The fake loses what happens between list and watch.
	for deadline := time.Now().Add(10 * time.Second); h.watches.Load() < before+3 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
	}
	controller.factory.WaitForCacheSync(ctx.Done()) // place is called by tests, too
	h.controller = controller
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

func (h *harness) remove(name string) {
	h.Helper()
	if err := h.client.CoreV1().Nodes().Delete(h.Context(), name, metav1.DeleteOptions{}); err != nil {
		h.Fatal(err)
	}
}

// recreate replaces a node by another one of the same name.
func (h *harness) recreate(name string) {
	h.Helper()
	h.remove(name)
	h.recreateDeleted(name)
}

func (h *harness) recreateDeleted(name string) {
	h.Helper()
	if _, err := h.client.CoreV1().Nodes().Create(h.Context(), node(name, "new-uid"), metav1.CreateOptions{}); err != nil {
		h.Fatal(err)
	}
	h.restart() // which fills the caches
}

func (h *harness) outOfService(name string) {
	h.patchNode(name, `{"spec":{"taints":[{"key":"node.kubernetes.io/out-of-service","effect":"NoExecute"}]}}`)
}

// send writes what the scheduler writes.
func (h *harness) send(node string) {
	h.Helper()
	h.patchClaim(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, storagehelpers.AnnSelectedNode, node))
}

func (h *harness) patchClaim(patch string) {
	h.Helper()
	if _, err := h.client.CoreV1().PersistentVolumeClaims("default").Patch(h.Context(), "claim", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		h.Fatal(err)
	}
}

// sendWhenSet has the scheduler send the claim to a node at the moment at which a node
// affinity is set for the first time.
func (h *harness) sendWhenSet(node string, then func()) {
	h.whenSet(func(tracker clienttesting.ObjectTracker) error {
		defer then()
		claims := corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
		object, err := tracker.Get(claims, "default", "claim")
		if err != nil {
			return err
		}
		claim := object.(*corev1.PersistentVolumeClaim).DeepCopy()
		claim.Annotations[storagehelpers.AnnSelectedNode] = node
		return tracker.Update(claims, claim, "default")
	})
}

// whenSet does something at the moment at which a node affinity is set for the first time. It does not use the client, which is
// busy with that.
func (h *harness) whenSet(do func(clienttesting.ObjectTracker) error) {
	var done atomic.Bool
	h.client.PrependReactor("patch", "persistentvolumes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := string(action.(clienttesting.PatchAction).GetPatch())
		if !strings.Contains(patch, `"In"`) || !done.CompareAndSwap(false, true) {
			return false, nil, nil
		}
		return false, nil, do(h.client.Tracker())
	})
}

// state returns the nodes that the node affinity names, and the annotations.
func (h *harness) state() string {
	h.Helper()
	pv, err := h.client.CoreV1().PersistentVolumes().Get(h.Context(), "pv", metav1.GetOptions{})
	if err != nil {
		h.Fatal(err)
	}
	state := "unset"
	if pv.Spec.NodeAffinity != nil {
		state = strings.Join(h.controller.named(pv), ",")
	}
	for _, a := range []struct{ key, text string }{{storagehelpers.AnnHomeNodes, "home"}, {annBegun, "begun"}, {annUnconfirmed, "unconfirmed"}} {
		if value, ok := pv.Annotations[a.key]; ok {
			state += fmt.Sprintf("; %s %s", a.text, strings.ReplaceAll(value, "-uid", ""))
		}
	}
	return strings.TrimSpace(state)
}

func (h *harness) expect(want string) {
	h.Helper()
	got := ""
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if got = h.state(); got == want {
			return
		}
	}
	h.Errorf("PersistentVolume: %q; expected %q", got, want)
}

func (h *harness) expectWrites(want int64) {
	h.Helper()
	if got := h.version.Load(); got != want {
		h.Errorf("%d writes of the PersistentVolume; expected %d", got, want)
	}
}

// stays has a new controller look at what there is, which may change nothing.
func (h *harness) stays(want string) {
	h.Helper()
	h.restart()
	pv, err := h.client.CoreV1().PersistentVolumes().Get(h.Context(), "pv", metav1.GetOptions{})
	if err == nil {
		err = h.controller.place(h.Context(), pv)
	}
	if err != nil && !apierrors.IsConflict(err) && status.Code(err) != codes.Aborted {
		h.Error(err)
	}
	h.expect(want)
}

func (h *harness) ask(question volume.Question, node string, code codes.Code) {
	h.Helper()
	err := h.requests().Ask(h.Context(), question, pool.Volume{ID: "v", Name: "pv"}, node)
	if status.Code(err) != code {
		h.Errorf("%s for %s: %v; expected %s", question, node, err, code)
	}
}

// requests are those of the driver on a node.
func (h *harness) requests() *Requests { return NewRequests(h.client, driver, key) }
