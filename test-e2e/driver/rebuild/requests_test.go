package rebuild

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"capacityv2.internal/test-e2e/driver/pool"
	"capacityv2.internal/test-e2e/driver/volume"
)

// TestRequests asks about a volume that is on n1, which is cordoned.
func TestRequests(t *testing.T) {
	const (
		ok      = codes.OK
		aborted = codes.Aborted
	)
	for name, do := range map[string]func(*harness){
		"rebuilt": func(h *harness) {
			h.ask(volume.Begin, "n2", aborted) // perhaps of an old pod
			h.send("n2")
			h.ask(volume.Begin, "n2", ok)
			h.stays("unset; home n1=n1; begun n2")
			h.ask(volume.Begin, "n2", ok)
			h.ask(volume.Place, "n1", aborted) // something was begun
			h.ask(volume.Begin, "n3", aborted)
			h.ask(volume.Place, "n3", aborted)
			h.uncordon("n1") // too late
			h.stays("unset; home n1=n1; begun n2")
			h.ask(volume.Place, "n2", ok)
			h.stays("n2")
			h.ask(volume.Place, "n2", ok)
			h.ask(volume.Begin, "n2", ok)
			h.ask(volume.Place, "n1", aborted)
			h.ask(volume.Begin, "n1", aborted)
		},
		"sent on while it is copied": func(h *harness) {
			h.send("n2")
			h.ask(volume.Begin, "n2", ok)
			h.send("n3")
			h.ask(volume.Place, "n1", ok) // nothing was begun for n3
			h.ask(volume.Begin, "n3", ok)
			h.ask(volume.Place, "n1", aborted)
			h.ask(volume.Place, "n2", aborted)
			h.stays("unset; home n1=n1; begun n3")
			h.ask(volume.Place, "n3", ok)
			h.stays("n3")
		},
		"sent home while it is copied": func(h *harness) {
			h.send("n2")
			h.ask(volume.Begin, "n2", ok)
			h.uncordon("n1")
			h.send("n1")
			h.stays("n1")
			h.ask(volume.Place, "n2", aborted)
		},
		"asked for at home by a pod that tolerates the cordon": func(h *harness) {
			h.ask(volume.Place, "n1", ok)
			h.stays("unset; home n1=n1")
			h.expectWrites(1) // it was not named for a moment
		},
		"asked for at home before it is begun elsewhere": func(h *harness) {
			h.send("n2")
			h.ask(volume.Place, "n1", ok)
			h.uncordon("n1")
			h.stays("unset; home n1=n1")
			h.ask(volume.Place, "n1", ok)
			h.stays("unset; home n1=n1")
		},
		"on a recreated node": func(h *harness) {
			h.recreate("n1")
			h.send("n2")
			h.ask(volume.Place, "n1", aborted) // it has not shown a copy
			h.ask(volume.Show, "n1", ok)
			h.ask(volume.Place, "n1", ok)
			h.stays("unset; home n1=new")
		},
		"dropped": func(h *harness) {
			h.send("n2")
			h.ask(volume.Begin, "n2", ok)
			h.ask(volume.Drop, "n3", ok)
			h.stays("unset; home n1=n1; begun n2")
			h.ask(volume.Drop, "n2", ok)
			h.stays("unset; home n1=n1")
			h.ask(volume.Place, "n2", ok)
			h.ask(volume.Drop, "n2", codes.FailedPrecondition)
			h.ask(volume.Drop, "n1", ok)
			h.ask(volume.Show, "n1", ok)
			h.stays("n2")
		},
		"claim gone": func(h *harness) {
			h.patchClaim(`{"metadata":{"uid":"other"}}`)
			h.ask(volume.Place, "n1", aborted)
			h.ask(volume.Begin, "n1", aborted)
			h.uncordon("n1")
			h.stays("unset; home n1=n1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, "n1")
			h.ask(volume.Begin, "n2", aborted)
			h.cordon("n1")
			h.expect("unset; home n1=n1")
			do(h)
		})
	}
}

// TestBegin has nodes that may not begin a copy: one that was not selected, although it is a home, and one whose Node is gone.
func TestBegin(t *testing.T) {
	h := newHarness(t, "n1")
	h.cordon("n1")
	h.expect("unset; home n1=n1")
	h.ask(volume.Begin, "n1", codes.OK)
	h.stays("unset; home n1=n1; begun n1")
	h.send("n2")
	h.ask(volume.Begin, "n1", codes.Aborted)
	h.ask(volume.Begin, "n3", codes.Aborted)
	h.remove("n2")
	h.ask(volume.Begin, "n2", codes.Unavailable)
	h.stays("unset; home n1=n1; begun n1")
	h.recreateDeleted("n2")
	h.ask(volume.Begin, "n2", codes.OK)
	h.remove("n2")
	h.ask(volume.Place, "n2", codes.Unavailable)
	h.stays("unset; home n1=n1; begun n2")
}

// TestOtherAffinity has a volume whose node affinity somebody has replaced by one that names no node.
// It is not released, and stays as it is.
func TestOtherAffinity(t *testing.T) {
	h := newHarness(t, "n1")
	patch := `{"metadata":{"annotations":{"` + annUnconfirmed + `":"", "` + annBegun + `":"n1"}}, "spec":{"nodeAffinity":
		{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["z"]}]}]}}}}`
	if _, err := h.client.CoreV1().PersistentVolumes().Patch(t.Context(), "pv", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, question := range []volume.Question{volume.Begin, volume.Place, volume.Show, volume.Drop} {
		h.ask(question, "n1", codes.Aborted)
	}
	h.stays("; begun n1; unconfirmed")
	h.expectWrites(1)
}

// TestFence checks what proves that a node is off: only somebody's word.
func TestFence(t *testing.T) {
	h := newHarness(t, "n1")
	off := func(want bool) {
		t.Helper()
		if got := h.requests().IsOff(t.Context(), "n1"); got != want {
			t.Errorf("off: %t; expected %t", got, want)
		}
	}
	off(false)
	h.cordon("n1")
	off(false)
	h.outOfService("n1")
	off(true)
	h.remove("n1")
	off(false)
	for name, v := range map[string]pool.Volume{"unknown": {ID: "v", Name: "unknown"}, "another one": {ID: "w", Name: "pv"}} {
		if err := h.requests().Ask(t.Context(), volume.Place, v, "n1"); status.Code(err) != codes.Unavailable {
			t.Errorf("%s volume: %v", name, err)
		}
	}
}

// TestDropUnknown asks about half a volume that no PersistentVolume has. Of one that is being created, nobody else knows.
func TestDropUnknown(t *testing.T) {
	h := newHarness(t, "n1")
	for name, test := range map[string]struct {
		v    pool.Volume
		want codes.Code
	}{
		"created":                     {pool.Volume{ID: "w", Name: "unknown", State: pool.Creating}, codes.OK},
		"created elsewhere meanwhile": {pool.Volume{ID: "w", Name: "pv", State: pool.Creating}, codes.OK},
		"created long ago":            {pool.Volume{ID: "v", Name: "pv", State: pool.Creating}, codes.FailedPrecondition},
		"copied":                      {pool.Volume{ID: "w", Name: "unknown", State: pool.Rebuilding}, codes.Unavailable},
		"copied from another one":     {pool.Volume{ID: "w", Name: "pv", State: pool.Rebuilding}, codes.Unavailable},
	} {
		if err := h.requests().Ask(t.Context(), volume.Drop, test.v, "n1"); status.Code(err) != test.want {
			t.Errorf("%s: %v; expected %s", name, err, test.want)
		}
	}
}
