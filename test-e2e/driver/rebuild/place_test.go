package rebuild

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	storagehelpers "k8s.io/component-helpers/storage/volume"
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
}

func newHarness(t *testing.T, copies ...string) *harness {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "claim", Namespace: "default", UID: "uid", Annotations: map[string]string{storagehelpers.AnnSelectedNode: "n1"}},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv"},
	}
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv"},
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
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	h := &harness{T: t, client: fake.NewClientset(objects...)}
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
	controller, err := New(h.client, driver, key)
	if err != nil {
		h.Fatal(err)
	}
	wait, err := controller.Start(ctx)
	if err != nil {
		h.Fatal(err)
	}
	h.controller = controller
	h.stop = func() { cancel(); wait() }
}

func (h *harness) node(name, patch string) {
	h.Helper()
	if _, err := h.client.CoreV1().Nodes().Patch(h.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		h.Fatal(err)
	}
}

func (h *harness) cordon(name string)   { h.node(name, `{"spec":{"unschedulable":true}}`) }
func (h *harness) uncordon(name string) { h.node(name, `{"spec":{"unschedulable":null}}`) }

func (h *harness) remove(name string) {
	h.Helper()
	if err := h.client.CoreV1().Nodes().Delete(h.Context(), name, metav1.DeleteOptions{}); err != nil {
		h.Fatal(err)
	}
}

// send writes what the scheduler writes.
func (h *harness) send(node string) {
	h.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, storagehelpers.AnnSelectedNode, node)
	if _, err := h.client.CoreV1().PersistentVolumeClaims("default").Patch(h.Context(), "claim", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		h.Fatal(err)
	}
}

// state returns the nodes that the node affinity names, and what is remembered.
func (h *harness) state() string {
	h.Helper()
	pv, err := h.client.CoreV1().PersistentVolumes().Get(h.Context(), "pv", metav1.GetOptions{})
	if err != nil {
		h.Fatal(err)
	}
	if pv.Spec.NodeAffinity == nil {
		return strings.TrimSpace("unset; " + pv.Annotations[annCopies] + "; " + pv.Annotations[annSentTo])
	}
	p := h.controller.placementOf(pv)
	state := strings.Join(p.named, ",")
	if slices.Compare(p.named, p.copies) != 0 || p.sentTo != nil {
		state += fmt.Sprintf("; %s; %s", strings.Join(p.copies, ","), pv.Annotations[annSentTo])
	}
	return state
}

func (h *harness) expect(want string) {
	h.Helper()
	got := ""
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if got = h.state(); got == want {
			return
		}
	}
	h.Errorf("node affinity: %q; expected %q", got, want)
}

// stays checks that nothing changes for a while.
func (h *harness) stays(want string) {
	h.Helper()
	h.expect(want)
	time.Sleep(100 * time.Millisecond)
	if got := h.state(); got != want {
		h.Errorf("node affinity: %q; expected %q", got, want)
	}
}

func (h *harness) publish(node string, code codes.Code) {
	h.Helper()
	_, err := h.controller.ControllerPublishVolume(h.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: "v", NodeId: node})
	if status.Code(err) != code {
		h.Errorf("published on %s: %v; expected %s", node, err, code)
	}
}

func TestPlacement(t *testing.T) {
	for name, test := range map[string]struct {
		copies []string
		do     func(*harness)
	}{
		"cordon and uncordon": {[]string{"n1"}, func(h *harness) {
			h.cordon("n1")
			h.expect("unset; n1; n1")
			h.uncordon("n1")
			h.stays("n1")
		}},
		"out of service": {[]string{"n1"}, func(h *harness) {
			h.node("n1", `{"spec":{"taints":[{"key":"node.kubernetes.io/out-of-service","effect":"NoExecute"}]}}`)
			h.expect("unset; n1; n1")
		}},
		"not ready only": {[]string{"n1"}, func(h *harness) {
			h.node("n1", `{"spec":{"taints":[{"key":"node.kubernetes.io/not-ready","effect":"NoExecute"}]}}`)
			h.stays("n1")
		}},
		"deleted": {[]string{"n1"}, func(h *harness) {
			h.remove("n1")
			h.expect("unset; n1; n1")
		}},
		"cordoned while the controller was down": {[]string{"n1"}, func(h *harness) {
			h.stop()
			h.cordon("n1")
			h.stop = nil
			h.restart()
			h.expect("unset; n1; n1")
		}},
		"another node is cordoned": {[]string{"n1"}, func(h *harness) {
			h.cordon("n2")
			h.stays("n1")
		}},
		"sent elsewhere before it came back": {[]string{"n1"}, func(h *harness) {
			h.cordon("n1")
			h.expect("unset; n1; n1")
			h.send("n2")
			h.restart() // remembers
			h.uncordon("n1")
			h.stays("unset; n1; n1")
			h.send("n1") // taken back by the scheduler
			h.expect("n1")
		}},
		"rebuilt": {[]string{"n1"}, func(h *harness) {
			h.publish("n2", codes.FailedPrecondition) // it is on n1
			h.cordon("n1")
			h.expect("unset; n1; n1")
			h.send("n2")
			h.publish("n2", codes.OK)
			h.publish("n2", codes.OK)
			h.publish("n3", codes.FailedPrecondition)
			h.uncordon("n1")
			h.stays("n2")
			h.publish("n1", codes.FailedPrecondition)
		}},
		"requested at home": {[]string{"n1"}, func(h *harness) {
			h.cordon("n1")
			h.expect("unset; n1; n1")
			h.publish("n1", codes.FailedPrecondition) // may be on its way
			h.send("n2")
			h.uncordon("n1")
			h.stays("unset; n1; n1")
			h.publish("n1", codes.OK) // whatever the annotation says
			h.stays("n1")
		}},
		"copies": {[]string{"n1", "n2"}, func(h *harness) {
			h.stays("n1,n2")
			h.cordon("n1")
			h.expect("n2; n1,n2; ")
			h.publish("n2", codes.OK)
			h.publish("n3", codes.FailedPrecondition)
			h.cordon("n2")
			h.expect("unset; n1,n2; n1")
			h.uncordon("n2")
			h.expect("n2; n1,n2; ")
			h.uncordon("n1")
			h.expect("n1,n2")
		}},
		"copies rebuilt": {[]string{"n1", "n2"}, func(h *harness) {
			h.cordon("n1")
			h.cordon("n2")
			h.expect("unset; n1,n2; n1")
			h.publish("n3", codes.OK)
			h.stays("n3")
		}},
		"claim recreated": {[]string{"n1"}, func(h *harness) {
			h.stop()
			h.stop = nil
			if _, err := h.client.CoreV1().PersistentVolumeClaims("default").Patch(h.Context(), "claim", types.MergePatchType, []byte(`{"metadata":{"uid":"other"}}`), metav1.PatchOptions{}); err != nil {
				h.Fatal(err)
			}
			h.restart()
			h.cordon("n1")
			h.stays("n1")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.do(newHarness(t, test.copies...))
		})
	}
}

// TestSentElsewhereMeanwhile has the scheduler write between the controller's look at the
// claim and its write of the volume.
func TestSentElsewhereMeanwhile(t *testing.T) {
	h := newHarness(t, "n1")
	h.cordon("n1")
	h.expect("unset; n1; n1")
	var named atomic.Bool
	h.client.PrependReactor("patch", "persistentvolumes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if patch := action.(clienttesting.PatchAction).GetPatch(); strings.Contains(string(patch), `"In"`) && named.CompareAndSwap(false, true) {
			// Not through the client, which is busy with this.
			object, err := h.client.Tracker().Get(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), "default", "claim")
			if err != nil {
				return true, nil, err
			}
			claim := object.(*corev1.PersistentVolumeClaim).DeepCopy()
			claim.Annotations[storagehelpers.AnnSelectedNode] = "n2"
			if err := h.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), claim, "default"); err != nil {
				return true, nil, err
			}
		}
		return false, nil, nil
	})
	h.uncordon("n1")
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline) && !named.Load(); time.Sleep(5 * time.Millisecond) {
	}
	if !named.Load() {
		t.Error("the node was not named again")
	}
	h.stays("unset; n1; n1")
}

// TestKilledWhilePuttingBack has a controller that has named the node again, and has not
// read the claim again.
func TestKilledWhilePuttingBack(t *testing.T) {
	for sentTo, want := range map[string]string{"n1": "n1", "n2": "unset; n1; n1"} {
		h := newHarness(t, "n1")
		h.stop()
		h.stop = nil
		h.send(sentTo)
		if _, err := h.client.CoreV1().PersistentVolumes().Patch(t.Context(), "pv", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"n1",%q:"n1"}}}`, annCopies, annSentTo), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		h.restart()
		h.stays(want)
		h.stop()
	}
}

func TestFence(t *testing.T) {
	h := newHarness(t, "n1")
	fence := func(code codes.Code) {
		t.Helper()
		_, err := h.controller.ControllerUnpublishVolume(t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: "v", NodeId: "n1"})
		if status.Code(err) != code {
			t.Errorf("fenced: %v; expected %s", err, code)
		}
	}
	fence(codes.FailedPrecondition)
	h.cordon("n1")
	fence(codes.FailedPrecondition) // it runs
	h.node("n1", `{"spec":{"taints":[{"key":"node.kubernetes.io/out-of-service","effect":"NoExecute"}]}}`)
	fence(codes.OK)
	h.remove("n1")
	fence(codes.OK)
	if _, err := h.controller.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: "unknown", NodeId: "n1"}); status.Code(err) != codes.Unavailable {
		t.Errorf("unknown volume: %v", err)
	}
}
