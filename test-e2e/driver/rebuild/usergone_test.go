package rebuild

import (
	"context"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"capacityv2.internal/test-e2e/driver/pool"
	"capacityv2.internal/test-e2e/driver/volume"
)

func deletes(resource, name string) func(clienttesting.ObjectTracker) error {
	return func(tracker clienttesting.ObjectTracker) error {
		return tracker.Delete(schema.GroupVersionResource{Version: corev1.SchemeGroupVersion.Version, Resource: resource}, "default", name)
	}
}

// TestPodGoneWhenSet has a pod that runs on n2 through a cordon, while the claim names n1, and that goes when the driver names n2.
// The scheduler may have sent another one to n1 before, which changed nothing in the claim. That one has to get the volume.
func TestPodGoneWhenSet(t *testing.T) {
	h := newHarness(t, "n2") // the claim was sent to n1
	h.run("n2")
	h.cordon("n2")
	h.expect("unset; home n2=n2")
	h.whenSet(deletes("pods", "pod"))
	h.uncordon("n2")
	h.stays("unset; home n2=n2")
	h.ask(volume.Begin, "n1", codes.OK)
	h.ask(volume.Place, "n1", codes.OK)
	h.stays("n1")
}

// rebuilding has a complete copy on n2, where the claim was sent, of the volume at home on n1.
func rebuilding(t *testing.T) (*harness, map[string]*volume.Manager, string) {
	h := newHarness(t, "n1")
	nodes := copies(h)
	if _, err := nodes["n1"].Store.Update("v", func(v *pool.Volume) error { v.FencedFor = "n2"; return nil }); err != nil {
		t.Fatal(err)
	}
	h.cordon("n1")
	h.expect("unset; home n1=n1")
	h.send("n2")
	h.ask(volume.Begin, "n2", codes.OK)
	return h, nodes, filepath.Join(t.TempDir(), "stage")
}

// expectServed asks all nodes for the volume, as stale requests do.
func (h *harness) expectServed(nodes map[string]*volume.Manager, want string) {
	h.Helper()
	got := ""
	for _, name := range []string{"n1", "n2"} {
		if err := nodes[name].Acquire(h.Context(), "v", filepath.Join(h.TempDir(), "stage")); err == nil {
			got += name
		}
	}
	if got != want {
		h.Errorf("served on %q; expected %q", got, want)
	}
}

// TestPodGone has a pod that goes while its volume is rebuilt on n2. The claim is still sent there.
func TestPodGone(t *testing.T) {
	for name, gone := range map[string]func(*harness, map[string]*volume.Manager, string){
		"unstaged": func(h *harness, nodes map[string]*volume.Manager, path string) {
			if err := nodes["n2"].Release(h.Context(), "v", path); err != nil {
				h.Error(err)
			}
			h.stays("unset; home n1=n1")
			h.send("n1") // by the next pod
			h.uncordon("n1")
			h.stays("n1")
			h.expectServed(nodes, "n1")
		},
		"never unstaged": func(h *harness, nodes map[string]*volume.Manager, path string) {
			nodes["n2"].Sweep(h.Context())
			h.stays("n2")
			h.expectServed(nodes, "n2")
		},
		"never unstaged, home is usable": func(h *harness, nodes map[string]*volume.Manager, path string) {
			h.uncordon("n1")
			nodes["n2"].Sweep(h.Context())
			h.stays("n2")
			h.expectServed(nodes, "n2")
		},
		"never unstaged, and the next one is sent home": func(h *harness, nodes map[string]*volume.Manager, path string) {
			h.uncordon("n1")
			h.send("n1")
			h.stays("n1")
			nodes["n2"].Sweep(h.Context())
			h.expectServed(nodes, "n1")
			if v, err := nodes["n2"].Store.Get("v"); err == nil {
				h.Errorf("n2 has a copy that is %s", v.State)
			}
		},
		"when n2 is named": func(h *harness, nodes map[string]*volume.Manager, path string) {
			ctx, cancel := context.WithCancel(h.Context())
			h.whenSet(func(clienttesting.ObjectTracker) error { cancel(); return nil })
			_ = nodes["n2"].Acquire(ctx, "v", path)
			if err := nodes["n2"].Release(h.Context(), "v", path); err != nil {
				h.Error(err)
			}
			nodes["n2"].Sweep(h.Context())
			h.stays("n2")
			h.expectServed(nodes, "n2")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, nodes, path := rebuilding(t)
			gone(h, nodes, path)
		})
	}
}

// TestClaimGone has a pod that goes with its claim while its volume is rebuilt on n2. The volume is then deleted by the node where
// it is, and no copy is left.
func TestClaimGone(t *testing.T) {
	for name, test := range map[string]struct {
		gone         func(*harness)
		state, owner string
	}{
		"before n2 is named": {func(h *harness) {
			if err := deletes("persistentvolumeclaims", "claim")(h.client.Tracker()); err != nil {
				h.Fatal(err)
			}
		}, "unset; home n1=n1", "n1"},
		"when n2 is named": {func(h *harness) { h.whenSet(deletes("persistentvolumeclaims", "claim")) }, "n2; begun n2; unconfirmed n1=n1", "n2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, nodes, path := rebuilding(t)
			test.gone(h)
			if err := nodes["n2"].Acquire(t.Context(), "v", path); status.Code(err) != codes.Aborted {
				t.Errorf("staged: %v", err)
			}
			_ = nodes["n2"].Release(t.Context(), "v", path)
			for _, m := range nodes {
				m.Sweep(t.Context())
			}
			h.stays(test.state)
			h.expectServed(nodes, "")
			if err := nodes[test.owner].Delete(t.Context(), "v"); err != nil {
				t.Error(err)
			}
			for name, m := range nodes {
				m.GiveUp(t.Context())
				if v, err := m.Store.Get("v"); err == nil {
					t.Errorf("%s has a copy that is %s", name, v.State)
				}
			}
		})
	}
}
