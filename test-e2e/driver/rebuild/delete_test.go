package rebuild

import (
	"os"
	"testing"

	"google.golang.org/grpc/codes"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/mount-utils"

	"capacityv2.internal/test-e2e/driver/pool"
	"capacityv2.internal/test-e2e/driver/volume"
)

// patchPV writes what another process has written.
func (h *harness) patchPV(patch string) {
	h.Helper()
	if _, err := h.client.CoreV1().PersistentVolumes().Patch(h.Context(), "pv", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		h.Fatal(err)
	}
}

// copies are two copies of the volume: the one of n1 has the data, and n2 has a complete one of it, which was not served.
func copies(h *harness) map[string]*volume.Manager {
	h.Helper()
	root, nodes := h.TempDir(), map[string]*volume.Manager{}
	for name, state := range map[string]pool.State{"n1": pool.Ready, "n2": pool.Rebuilt} {
		store, err := pool.Create(root, name, []pool.Pool{{Name: "p", Size: resource.MustParse("10Gi")}})
		if err != nil {
			h.Fatal(err)
		}
		m, err := volume.New(h.Context(), &volume.Manager{Store: store, Backing: volume.Folders{}, Mounter: mount.NewFakeMounter(nil), Placement: h.requests()})
		if err != nil {
			h.Fatal(err)
		}
		v, err := store.Reserve(pool.Volume{ID: "v", Name: "pv", State: state, CapacityBytes: 1, Generation: 1})
		if err == nil {
			err = os.Mkdir(v.Path, 0o700)
		}
		if err != nil {
			h.Fatal(err)
		}
		nodes[name] = m
	}
	return nodes
}

// TestDeleteWithoutClaim deletes a volume that a node has not served before its claim was deleted. That node is
// the only one that is asked.
func TestDeleteWithoutClaim(t *testing.T) {
	for name, where := range map[string]string{
		"named, unconfirmed": `{"metadata":{"annotations":{"` + annUnconfirmed + `":"n1=n1-uid"}}}`,
		"named":              `{}`,
		"a home node": `{"metadata":{"annotations":{"` + storagehelpers.AnnHomeNodes + `":"n2=n2-uid","` + annBegun + `":"n3"}},
			"spec":{"nodeAffinity":null}}`,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, "n2")
			h.patchClaim(`{"metadata":{"uid":"other"}}`)
			h.patchPV(where)
			nodes := copies(h)
			before := h.state()
			nodes["n2"].Sweep(t.Context())
			if _, err := nodes["n2"].Store.Get("v"); err != nil {
				t.Errorf("after a look at it: %v", err)
			}
			if got := h.state(); got != before {
				t.Errorf("PersistentVolume: %q; expected %q", got, before)
			}
			if err := nodes["n2"].Delete(t.Context(), "v"); err != nil {
				t.Error(err)
			}
			nodes["n1"].GiveUp(t.Context())
			for node, m := range nodes {
				if rooms, err := m.Store.Rooms(nil); err != nil || rooms[0].AvailableBytes != 10<<30 {
					t.Errorf("left on %s: %v, %v", node, rooms, err)
				}
			}
		})
	}
}

// TestHomeIsKept looks at a copy of a home node that was not served, while another node is asked for the volume.
func TestHomeIsKept(t *testing.T) {
	h := newHarness(t, "n2")
	h.send("n3")
	h.patchPV(`{"metadata":{"annotations":{"` + storagehelpers.AnnHomeNodes + `":"n2=n2-uid","` + annBegun + `":"n3"}},"spec":{"nodeAffinity":null}}`)
	nodes := copies(h)
	nodes["n2"].Sweep(t.Context())
	if v, err := nodes["n2"].Store.Get("v"); err != nil || v.State != pool.Rebuilt {
		t.Errorf("after a look at it: %v, %v", v, err)
	}
	h.ask(volume.Drop, "n2", codes.FailedPrecondition)
	h.ask(volume.Drop, "n1", codes.OK)
}
