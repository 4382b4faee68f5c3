package volume

import (
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"

	"capacityv2.internal/test-e2e/driver/pool"
)

// newOld is a cluster in which node m has a volume, and node n an old copy of it.
func newOld(t *testing.T) *slow {
	s := newSlow(t)
	close(s.allow)
	s.expect(s.m.Acquire(t.Context(), s.id, s.path), codes.OK, "")
	s.keepOld()
	s.expect(s.m.Release(t.Context(), s.id, s.path), codes.OK, "")
	s.release(s.id)
	return s
}

// TestSourceGone asks for a volume whose newest copy cannot be read, on a node with an old one. That may be the
// last one that somebody can read.
func TestSourceGone(t *testing.T) {
	s := newOld(t)
	if err := os.RemoveAll(mustGet(s.cluster, s.m, s.id).Path); err != nil {
		t.Fatal(err)
	}
	s.expect(s.n.Acquire(t.Context(), s.id, s.path), codes.Unavailable, "cannot be read")
	if got := s.data(s.n, s.id); got != "ready" || mustGet(s.cluster, s.n, s.id).Generation != 1 {
		t.Errorf("the old copy is %s, of generation %d", got, mustGet(s.cluster, s.n, s.id).Generation)
	}
}

// TestOldCopyStays fails to copy a volume to a node with an old copy. That is still there if its pool has room for both.
func TestOldCopyStays(t *testing.T) {
	for name, test := range map[string]struct {
		other int64 // Gi of another volume
		want  string
		left  int64
	}{
		"room for both": {8, "ready", 1},
		"no room":       {9, "none", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newOld(t)
			_, err := s.n.Create(t.Context(), pool.Volume{Name: "other", CapacityBytes: test.other * gi}, 0)
			s.expect(err, codes.OK, "")
			s.n.Store.Fault = func(step string) {
				if step == "copied data" {
					s.n.Sweep(t.Context()) // leaves alone what goes on
					if left := s.left(s.n); left != 0 {
						t.Errorf("while it is copied: %d are left", left)
					}
					if err := os.WriteFile(filepath.Join(mustGet(s.cluster, s.m, s.id).Path, "link"), []byte("first, and more"), 0o600); err != nil {
						t.Error(err)
					}
				}
			}
			s.expect(s.n.Acquire(t.Context(), s.id, s.path), codes.FailedPrecondition, "still being written")
			if got := s.data(s.n, s.id); got != test.want || s.left(s.n) != test.left || s.begun[s.id] != "" {
				t.Errorf("old copy: %s; %d are left; expected %s and %d; begun for %q", got, s.left(s.n), test.want, test.left, s.begun[s.id])
			}
			s.n.Store.Fault = nil
			s.expect(s.n.Acquire(t.Context(), s.id, s.path), codes.OK, "")
			if got := s.data(s.n, s.id); got != "ready first, and more" || s.left(s.n) != 9-test.other {
				t.Errorf("in its place: %s; %d are left", got, s.left(s.n))
			}
			if files, err := os.ReadDir(s.pool("n")); err != nil || len(files) != 2 {
				t.Errorf("on the disk: %v, %v", files, err)
			}
		})
	}
}

// TestKilledBesideOldCopy kills a driver that copies a volume beside an old copy.
func TestKilledBesideOldCopy(t *testing.T) {
	s := newOld(t)
	s.n.Store.Fault = func(step string) {
		if step == "copied data" {
			panic(killed{})
		}
	}
	if died := (&steps{}).run(func() { _ = s.n.copyHere(t.Context(), s.id) }); !died {
		t.Error("the driver was not killed")
	}
	n := s.start("n")
	files, err := os.ReadDir(s.pool("n"))
	if got := s.data(n, s.id); got != "ready" || s.left(n) != 9 || err != nil || len(files) != 1 {
		t.Errorf("old copy: %s; %d are left; on the disk: %v, %v", got, s.left(n), files, err)
	}
}

// TestNodeNamedCopy moves a volume that was made on a node whose name is like the end of the ID of a copy.
func TestNodeNamedCopy(t *testing.T) {
	c := newCluster(t, map[string]int64{"copy": 10, "n": 10})
	maker, n := c.start("copy"), c.start("n")
	v := c.volume(maker)
	for _, m := range []*Manager{n, maker} {
		c.release(v.ID)
		c.expect(m.Acquire(t.Context(), v.ID, c.path), codes.OK, "")
		if c.named[v.ID] != m.Store.Node {
			t.Errorf("the PersistentVolume names %q; expected %s", c.named[v.ID], m.Store.Node)
		}
		c.expect(m.Release(t.Context(), v.ID, c.path), codes.OK, "")
	}
}
