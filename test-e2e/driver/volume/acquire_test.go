package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	"capacityv2.internal/test-e2e/driver/pool"
)

func TestRebuild(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 10, "m": 10})
	n, m := c.start("n"), c.start("m")
	v := c.volume(n)
	c.release(v.ID)
	for range 2 { // the call may be repeated
		if err := m.Acquire(t.Context(), v.ID, c.path); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.data(m, v.ID); got != "ready first" {
		t.Errorf("new node: %s", got)
	}
	n.GiveUp(t.Context())
	if got := c.data(n, v.ID); got != "none" {
		t.Errorf("old node: %s", got)
	}
	if c.named[v.ID] != "m" || c.left(n) != 10 || c.left(m) != 9 {
		t.Errorf("named %q, left %d and %d", c.named[v.ID], c.left(n), c.left(m))
	}
	// And back.
	c.expect(m.Release(t.Context(), v.ID, c.path), codes.OK, "")
	c.release(v.ID)
	c.write(n, v.ID, "second")
	m.GiveUp(t.Context())
	if got := c.data(n, v.ID) + ", " + c.data(m, v.ID); got != "ready second, none" {
		t.Errorf("back home: %s", got)
	}
}

// TestRefused checks that a refusal changes nothing: the old copy is there, the new node
// has its room.
func TestRefused(t *testing.T) {
	stage := func(c *cluster, n *Manager, id string) {
		c.named[id] = "n"
		err := n.Acquire(c.Context(), id, c.path)
		c.expect(err, codes.OK, "")
		c.release(id)
	}
	for name, test := range map[string]struct {
		prepare func(c *cluster, n, m *Manager, id string)
		code    codes.Code
		text    string
	}{
		"no room": {func(c *cluster, _, m *Manager, _ string) {
			_, err := m.Create(c.Context(), pool.Volume{Name: "other", CapacityBytes: 2 * gi}, 0)
			c.expect(err, codes.OK, "")
		}, codes.ResourceExhausted, "no pool has enough room"},
		"staged": {func(c *cluster, n, _ *Manager, id string) { stage(c, n, id) }, codes.FailedPrecondition, "still staged on node n"},
		"elsewhere": {func(c *cluster, _, _ *Manager, id string) {
			c.named[id] = "n"
		}, codes.Aborted, "volume is on n"},
		"data away": {func(c *cluster, n, _ *Manager, id string) {
			// The disk is not there, or not mounted here.
			if err := os.Rename(c.pool("n"), c.pool("n")+".gone"); err != nil {
				c.Fatal(err)
			}
			c.Cleanup(func() {
				if err := os.Rename(c.pool("n")+".gone", c.pool("n")); err != nil {
					c.Error(err)
				}
			})
		}, codes.Unavailable, "cannot be read"},
		"written meanwhile": {func(c *cluster, n, m *Manager, id string) {
			stage(c, n, id)
			c.off = []string{"n"} // says who put it out of service, wrongly
			m.Store.Fault = func(step string) {
				if step == "copied data" {
					dir := filepath.Join(c.pool("n"), id)
					if err := os.WriteFile(filepath.Join(dir, "folder/file"), []byte("first, and more"), 0o640); err != nil {
						c.Error(err)
					}
				}
			}
		}, codes.FailedPrecondition, "still being written"},
		"no API server": {func(c *cluster, _, _ *Manager, _ string) { c.away = true }, codes.Unavailable, "away"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, map[string]int64{"n": 10, "m": 2})
			n, m := c.start("n"), c.start("m")
			v := c.volume(n)
			c.release(v.ID)
			test.prepare(c, n, m, v.ID)
			before := c.left(m)
			err := m.Acquire(t.Context(), v.ID, c.path)
			c.expect(err, test.code, test.text)
			if got := c.data(m, v.ID); got != "none" || c.left(m) != before {
				t.Errorf("new node: %s, %d are left; expected %d", got, c.left(m), before)
			}
			if v, err := n.Get(v.ID); err != nil || v.State != pool.Ready {
				t.Errorf("old node: %v, %v", v, err)
			}
		})
	}
}

// TestNotMounted checks that a node does not keep a volume that it could not mount.
func TestNotMounted(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 10, "m": 10})
	n, m := c.start("n"), c.start("m")
	v := c.volume(n)
	n.Mounter = broken{n.Mounter}
	c.expect(n.Acquire(t.Context(), v.ID, c.path), codes.Internal, "broken")
	c.release(v.ID)
	c.expect(m.Acquire(t.Context(), v.ID, c.path), codes.OK, "")
}

// TestOldCopyIsKept checks that the old copy is given up only after the new one serves.
func TestOldCopyIsKept(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 10, "m": 10})
	n, m := c.start("n"), c.start("m")
	v := c.volume(n)
	c.release(v.ID)
	mounter := m.Mounter
	m.Mounter = broken{mounter}
	err := m.Acquire(t.Context(), v.ID, c.path)
	c.expect(err, codes.Internal, "broken")
	n.GiveUp(t.Context())
	if got := c.data(n, v.ID); got != "ready first" {
		t.Errorf("old copy before the new one serves: %s", got)
	}
	m.Mounter = mounter
	err = m.Acquire(t.Context(), v.ID, c.path)
	c.expect(err, codes.OK, "")
	n.GiveUp(t.Context())
	if got := c.data(n, v.ID); got != "none" {
		t.Errorf("old copy after that: %s", got)
	}
}

// TestFence checks that a copy is not served any more after another node has begun to
// take it over, but by a decision of the controller half.
func TestFence(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 10, "m": 10})
	n, m := c.start("n"), c.start("m")
	v := c.volume(n)
	c.release(v.ID)
	if err := m.copyHere(t.Context(), v.ID); err != nil {
		t.Fatal(err)
	}
	c.away = true
	for _, manager := range []*Manager{m, n} {
		err := manager.Acquire(t.Context(), v.ID, c.path)
		c.expect(err, codes.Unavailable, "")
	}
	if got := c.data(n, v.ID) + ", " + c.data(m, v.ID); got != "ready first, rebuilt first" || c.left(m) != 9 {
		t.Errorf("without a controller half: %s", got)
	}
	// It decides for the old node, whose data changes.
	c.away = false
	leftover, err := m.Store.Get(v.ID)
	if err != nil {
		t.Fatal(err)
	}
	c.write(n, v.ID, "second")
	// As if it could not be removed.
	if _, err := m.Store.Reserve(leftover); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(c.pool("m"), v.ID), 0o700); err != nil {
		t.Fatal(err)
	}
	err = m.Acquire(t.Context(), v.ID, c.path)
	c.expect(err, codes.Aborted, "volume is on n")
	// Then for the new one, which must not serve what it copied before.
	c.release(v.ID)
	if _, err := m.Store.Reserve(leftover); err != nil {
		t.Fatal(err)
	}
	if err := m.Acquire(t.Context(), v.ID, c.path); err != nil {
		t.Fatal(err)
	}
	if got := c.data(m, v.ID); got != "ready second" {
		t.Errorf("new node: %s", got)
	}
	err = n.Acquire(t.Context(), v.ID, c.path)
	c.expect(err, codes.Aborted, "volume is on m")
}

// TestServedWithoutAPIServer has an API server that does not answer. What is staged stays, and nothing else is served: books
// that were restored may call a copy current that is not.
func TestServedWithoutAPIServer(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 10})
	n := c.start("n")
	v := c.volume(n)
	c.expect(n.Acquire(t.Context(), v.ID, c.path), codes.OK, "")
	c.away = true
	c.expect(n.Acquire(t.Context(), v.ID, c.path), codes.OK, "")
	c.expect(n.Release(t.Context(), v.ID, c.path), codes.OK, "")
	c.expect(n.Acquire(t.Context(), v.ID, c.path), codes.Unavailable, "away")
	c.away, c.named[v.ID] = false, "m"
	c.expect(n.Acquire(t.Context(), v.ID, c.path), codes.Aborted, "volume is on m")
}

// TestNodeOff takes a volume from a node that never unstaged it.
func TestNodeOff(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 10, "m": 10})
	n, m := c.start("n"), c.start("m")
	v := c.volume(n)
	if err := n.Acquire(t.Context(), v.ID, c.path); err != nil {
		t.Fatal(err)
	}
	c.release(v.ID)
	c.off = []string{"n"}
	err := m.Acquire(t.Context(), v.ID, c.path)
	c.expect(err, codes.OK, "")
	c.expect(n.Release(t.Context(), v.ID, c.path), codes.OK, "") // it was not off
	n.GiveUp(t.Context())
	if got := c.data(n, v.ID) + ", " + c.data(m, v.ID); got != "none, ready first" {
		t.Error(got)
	}
}

// TestCommit checks the last look before a copy is opened for writing.
func TestCommit(t *testing.T) {
	for name, test := range map[string]struct {
		own, other func(*pool.Volume) error
		code       codes.Code
	}{
		"nothing has changed": {code: codes.OK},
		"fenced here":         {own: func(v *pool.Volume) error { v.FencedFor = "n"; return nil }, code: codes.Aborted},
		"not fenced there":    {other: func(v *pool.Volume) error { v.FencedFor = ""; return nil }, code: codes.Aborted},
		"newer there":         {other: func(v *pool.Volume) error { v.Generation = 8; return nil }, code: codes.Aborted},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, map[string]int64{"n": 10, "m": 10})
			n, m := c.start("n"), c.start("m")
			id := pool.ID("v", "n")
			for _, r := range []struct {
				*Manager
				pool.Volume
				change func(*pool.Volume) error
			}{
				{n, pool.Volume{ID: id, State: pool.Ready, Generation: 7, FencedFor: "m"}, test.other},
				{m, pool.Volume{ID: id, State: pool.Rebuilt, Generation: 7}, test.own},
			} {
				if _, err := r.Store.Reserve(r.Volume); err != nil {
					t.Fatal(err)
				}
				if r.change != nil {
					if _, err := r.Store.Update(id, r.change); err != nil {
						t.Fatal(err)
					}
				}
			}
			v, err := m.commit(id, c.path, 7, []replica{{store: n.Store}})
			c.expect(err, test.code, "")
			if err == nil && (v.State != pool.Ready || v.Generation != 8 || v.StagedAt != c.path) {
				t.Errorf("got %v", v)
			}
		})
	}
}

// TestAtOnce lets all nodes ask for a volume at once, without an API server that
// decides. At most one may have it.
func TestAtOnce(t *testing.T) {
	names := []string{"n", "m", "o"}
	for range 20 {
		c := newCluster(t, map[string]int64{"n": 10, "m": 10, "o": 10})
		managers := make([]*Manager, len(names))
		for i, name := range names {
			managers[i] = c.start(name)
		}
		v := c.volume(managers[0])
		for _, m := range managers {
			m.Placement = agrees{}
		}
		var (
			wg     sync.WaitGroup
			mutex  sync.Mutex
			served []string
		)
		for i, m := range managers {
			wg.Go(func() {
				for range 5 {
					if err := m.Acquire(t.Context(), v.ID, c.path); err == nil {
						mutex.Lock()
						served = append(served, names[i])
						mutex.Unlock()
						return
					}
				}
			})
		}
		wg.Wait()
		if len(served) > 1 {
			t.Fatalf("volume is staged on %v", served)
		}
		data := 0
		for _, m := range managers {
			if c.data(m, v.ID) == "ready first" {
				data++
			}
		}
		if data == 0 {
			t.Fatal("the data is lost")
		}
	}
}

// agrees is one that always agrees.
type agrees struct{}

func (agrees) IsOff(context.Context, string) bool                                  { return false }
func (agrees) Self(context.Context, string) (string, error)                        { return "uid", nil }
func (agrees) Ask(context.Context, Question, pool.Volume, string, ...string) error { return nil }

// TestOtherPath has calls with another staging path than the one at which a volume is staged.
// They leave it staged: another node must not have it.
func TestOtherPath(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 10, "m": 10})
	n, m := c.start("n"), c.start("m")
	v := c.volume(n)
	c.expect(n.Acquire(t.Context(), v.ID, c.path), codes.OK, "")
	other := c.path + "-other"
	c.expect(n.Acquire(t.Context(), v.ID, other), codes.FailedPrecondition, "staged at")
	c.expect(n.Release(t.Context(), v.ID, other), codes.OK, "")
	c.release(v.ID)
	c.expect(m.Acquire(t.Context(), v.ID, c.path), codes.FailedPrecondition, "still staged on node n")
	c.expect(n.Release(t.Context(), v.ID, c.path), codes.OK, "")
	c.expect(m.Acquire(t.Context(), v.ID, c.path), codes.OK, "")
}

// TestMountedBefore has something else mounted at the staging path, such as a copy that another
// node has taken over. What is served is the copy of now.
func TestMountedBefore(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 10})
	n := c.start("n")
	v := c.volume(n)
	if err := n.Mounter.Mount("old", c.path, "", []string{"bind"}); err != nil {
		t.Fatal(err)
	}
	c.expect(n.Acquire(t.Context(), v.ID, c.path), codes.OK, "")
	mounts, err := n.Mounter.List()
	if err != nil || len(mounts) != 1 || mounts[0].Device != v.Path {
		t.Errorf("mounted: %v, %v; expected %s", mounts, err, v.Path)
	}
}

// TestTakenOver has the kubelet ask again for a volume that was taken over while it was staged.
// It has to unstage it, so the error must not be final.
func TestTakenOver(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 10})
	n := c.start("n")
	v := c.volume(n)
	c.expect(n.Acquire(t.Context(), v.ID, c.path), codes.OK, "")
	_, err := n.Store.Update(v.ID, func(v *pool.Volume) error { v.FencedFor = "m"; return nil })
	c.expect(err, codes.OK, "")
	c.expect(n.Acquire(t.Context(), v.ID, c.path), codes.Aborted, "taken")
}

// TestBooksAway has a node whose books cannot be read for a while. No call may say then that nothing is mounted or made: an
// earlier one may have done it.
func TestBooksAway(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 10})
	n := c.start("n")
	v := c.volume(n)
	c.expect(n.Acquire(t.Context(), v.ID, c.path), codes.OK, "")
	lock := filepath.Join(c.root, "books/n/lock")
	breakLock := func() {
		if err := errors.Join(os.RemoveAll(lock), os.Mkdir(lock, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	wanted := pool.Volume{Name: "v", CapacityBytes: gi}
	calls := func(code codes.Code) {
		t.Helper()
		c.expect(n.Acquire(t.Context(), v.ID, c.path), code, "")
		c.expect(n.Publish(t.Context(), v.ID, c.path, c.path+"-pod", false), code, "")
		c.expect(n.Unpublish(v.ID, c.path+"-pod"), codes.OK, "")
		_, err := n.Create(t.Context(), wanted, 0)
		c.expect(err, code, "")
	}
	breakLock()
	calls(codes.Unavailable)
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	calls(codes.OK)
	wanted.Name = "made"
	n.Store.Fault = func(step string) {
		if step == "made data" {
			breakLock()
		}
	}
	_, err := n.Create(t.Context(), wanted, 0)
	c.expect(err, codes.Unavailable, "")
}
