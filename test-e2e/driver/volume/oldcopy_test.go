package volume

import (
	"os"
	"testing"

	"google.golang.org/grpc/codes"
)

// newOld is a cluster in which node m has a volume, and node n an old copy of it.
func newOld(t *testing.T) *slow {
	s := newSlow(t)
	close(s.allow)
	s.expect(s.m.Acquire(t.Context(), s.id, s.path), codes.OK, "")
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
	if got := s.data(s.n, s.id); got != "ready first" || mustGet(s.cluster, s.n, s.id).Generation != 1 {
		t.Errorf("the old copy is %s, of generation %d", got, mustGet(s.cluster, s.n, s.id).Generation)
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
