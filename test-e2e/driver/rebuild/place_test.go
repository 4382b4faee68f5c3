package rebuild

import (
	"fmt"
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
	clienttesting "k8s.io/client-go/testing"
	storagehelpers "k8s.io/component-helpers/storage/volume"
)

func TestPlacement(t *testing.T) {
	for name, test := range map[string]struct {
		copies []string
		do     func(*harness)
	}{
		"cordon and uncordon": {[]string{"n1"}, func(h *harness) {
			h.cordon("n1")
			h.stays("unset; n1; n1")
			if n := h.version.Load(); n != 1 {
				h.Errorf("%d writes; expected 1", n)
			}
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
			if !strings.Contains(string(patch), annSentTo+`":"n1"`) {
				t.Errorf("what is remembered is gone too early: %s", patch)
			}
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
	for _, test := range []struct {
		sentTo string
		do     func(*harness)
		want   string
	}{
		{"n1", func(*harness) {}, "n1"},
		{"n2", func(*harness) {}, "unset; n1; n1"},
		{"n2", func(h *harness) { h.cordon("n1") }, "unset; n1; n1"},
		{"n2", func(h *harness) { // n1 asks for the volume
			pv, err := h.client.CoreV1().PersistentVolumes().Get(h.Context(), "pv", metav1.GetOptions{})
			if err == nil {
				err = h.controller.publish(h.Context(), pv, "n1")
			}
			if err != nil {
				h.Error(err)
			}
		}, "n1"},
	} {
		h := newHarness(t, "n1")
		h.stop()
		h.stop = nil
		h.send(test.sentTo)
		if _, err := h.client.CoreV1().PersistentVolumes().Patch(t.Context(), "pv", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"n1",%q:"n1"}}}`, annCopies, annSentTo), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		test.do(h)
		h.restart()
		h.stays(test.want)
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
