package rebuild

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"capacityv2.internal/test-e2e/driver/volume"
)

// TestPlacement has what happens to nodes. The claim was sent to n1.
func TestPlacement(t *testing.T) {
	for name, test := range map[string]struct {
		copies string
		do     func(*harness)
	}{
		"cordon and uncordon": {"n1", func(h *harness) {
			h.cordon("n1")
			h.stays("unset; home n1=n1")
			h.expectWrites(1)
			h.uncordon("n1")
			h.stays("n1")
		}},
		"out of service": {"n1", func(h *harness) {
			h.outOfService("n1")
			h.expect("unset; home n1=n1")
		}},
		"not ready only": {"n1", func(h *harness) {
			h.patchNode("n1", `{"spec":{"taints":[{"key":"node.kubernetes.io/not-ready","effect":"NoExecute"}]}}`)
			h.stays("n1")
		}},
		"deleted": {"n1", func(h *harness) {
			h.remove("n1")
			h.expect("unset; home")
		}},
		"cordoned while the controller was down": {"n1", func(h *harness) {
			h.stop()
			h.cordon("n1")
			h.stop = nil
			h.restart()
			h.expect("unset; home n1=n1")
		}},
		"another node is cordoned": {"n1", func(h *harness) {
			h.cordon("n2")
			h.stays("n1")
		}},
		"a usable copy is left": {"n1,n2", func(h *harness) {
			h.stays("n1,n2")
			h.cordon("n1")
			h.stays("n1,n2")
			h.uncordon("n1")
			h.cordon("n2")
			h.stays("n1,n2")
			h.cordon("n1")
			h.expect("unset; home n1=n1,n2=n2")
			h.uncordon("n2")
			h.expect("n1,n2")
		}},
		"one of two copies is on a recreated node": {"n1,n2", func(h *harness) {
			h.cordon("n1")
			h.cordon("n2")
			h.expect("unset; home n1=n1,n2=n2")
			h.recreate("n1")
			h.send("n2")
			h.uncordon("n2")
			h.stays("n2")
		}},
		"sent elsewhere before it came back": {"n1", func(h *harness) {
			h.cordon("n1")
			h.expect("unset; home n1=n1")
			h.send("n2")
			h.uncordon("n1")
			h.stays("unset; home n1=n1")
			h.expectWrites(1) // it was not named for a moment
			h.send("n1")
			h.expect("n1")
		}},
		"the driver had moved it": {"n2", func(h *harness) {
			h.cordon("n2")
			h.expect("unset; home n2=n2")
			h.uncordon("n2")
			h.stays("unset; home n2=n2") // the claim was sent to n1 long ago
			h.send("n2")
			h.expect("n2")
		}},
		"recreated, perhaps with new disks": {"n1", func(h *harness) {
			h.cordon("n1")
			h.expect("unset; home n1=n1")
			h.recreate("n1")
			h.stays("unset; home n1=n1")
			h.ask(volume.Show, "n1", codes.OK)
			h.stays("n1")
		}},
		"recreated after it was sent elsewhere": {"n1", func(h *harness) {
			h.remove("n1")
			h.expect("unset; home")
			h.ask(volume.Show, "n1", codes.OK)
			h.stays("unset; home")
			h.send("n2")
			h.recreateDeleted("n1")
			h.ask(volume.Show, "n1", codes.OK)
			h.ask(volume.Show, "n1", codes.OK)
			h.stays("unset; home n1=new")
		}},
		"claim without a node": {"n1", func(h *harness) {
			h.patchClaim(`{"metadata":{"annotations":null}}`)
			h.restart()
			h.cordon("n1")
			h.stays("unset; home n1=n1")
		}},
		"claim recreated": {"n1", func(h *harness) {
			h.patchClaim(`{"metadata":{"uid":"other"}}`)
			h.restart()
			h.cordon("n1")
			h.stays("n1")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.do(newHarness(t, strings.Split(test.copies, ",")...))
		})
	}
}

// TestPatch has the patches as they are sent: affinity and home nodes are in one, with the
// version that was read.
func TestPatch(t *testing.T) {
	h := newHarness(t, "n1")
	h.cordon("n1")
	h.stays("unset; home n1=n1")
	h.uncordon("n1")
	h.stays("n1")
	h.stop()
	want := []string{
		`{"metadata":{"annotations":{"pv.kubernetes.io/home-nodes":"n1=n1-uid","reference.csi.capacityv2.internal/begun":null,"reference.csi.capacityv2.internal/released-from":"n1","reference.csi.capacityv2.internal/unconfirmed":null},"resourceVersion":"0"},"spec":{"nodeAffinity":null}}`,
		`{"metadata":{"annotations":{"pv.kubernetes.io/home-nodes":null,"reference.csi.capacityv2.internal/unconfirmed":"n1=n1-uid"},"resourceVersion":"1"},"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"topology.example.com/node","operator":"In","values":["n1"]}]}]}}}}`,
		`{"metadata":{"annotations":{"reference.csi.capacityv2.internal/begun":null,"reference.csi.capacityv2.internal/unconfirmed":null},"resourceVersion":"2"},"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"topology.example.com/node","operator":"In","values":["n1"]}]}]}}}}`,
	}
	if !slices.Equal(h.patches, want) {
		t.Errorf("patches:\n%s\nexpected:\n%s", strings.Join(h.patches, "\n"), strings.Join(want, "\n"))
	}
	h.stop = func() {}
}

// TestSentElsewhereMeanwhile has the scheduler write between the controller's look at the
// claim and its write of the volume.
func TestSentElsewhereMeanwhile(t *testing.T) {
	t.Run("put back", func(t *testing.T) {
		h := newHarness(t, "n1")
		h.cordon("n1")
		h.expect("unset; home n1=n1")
		set := make(chan struct{})
		h.sendWhenSet("n2", func() { close(set) })
		h.uncordon("n1")
		select {
		case <-set:
		case <-time.After(10 * time.Second):
			t.Error("the node affinity was not set")
		}
		h.stays("unset; home n1=n1")
	})
	t.Run("rebuilt", func(t *testing.T) {
		h := newHarness(t, "n1")
		h.cordon("n1")
		h.expect("unset; home n1=n1")
		h.send("n2")
		h.ask(volume.Begin, "n2", codes.OK)
		h.sendWhenSet("n3", func() {})
		h.ask(volume.Place, "n2", codes.Aborted)
		h.stays("unset; home n1=n1")
		h.ask(volume.Place, "n2", codes.Aborted)
		h.ask(volume.Begin, "n3", codes.OK)
	})
	t.Run("rebuilt, and sent home", func(t *testing.T) {
		h := newHarness(t, "n1")
		h.cordon("n1")
		h.expect("unset; home n1=n1")
		h.send("n2")
		h.uncordon("n1")
		h.sendWhenSet("n1", func() {})
		h.ask(volume.Place, "n2", codes.Aborted)
		h.stays("n1")
	})
}

// TestKilledBeforeSecondLook has a controller that has set the affinity, and has not read
// the claim again.
func TestKilledBeforeSecondLook(t *testing.T) {
	for name, test := range map[string]struct {
		sent string
		do   func(*harness)
		want string
	}{
		"not sent elsewhere": {"n2", func(*harness) {}, "n2"},
		"sent elsewhere":     {"n3", func(*harness) {}, "unset; home n1=n1"},
		"asks before that":   {"n3", func(h *harness) { h.ask(volume.Place, "n2", codes.Aborted) }, "unset; home n1=n1"},
		"sent home":          {"n1", func(*harness) {}, "unset; home n1=n1"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, "n2")
			h.cordon("n1")
			h.stop()
			h.send(test.sent)
			patch := `{"metadata":{"annotations":{"` + annUnconfirmed + `":"n1=n1-uid","` + annBegun + `":"n2"}}}`
			if _, err := h.client.CoreV1().PersistentVolumes().Patch(t.Context(), "pv", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			test.do(h)
			h.stop = nil
			h.restart()
			h.expect(test.want)
		})
	}
}
