package volume

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"capacityv2.internal/test-e2e/driver/pool"
)

// slow is a cluster in which node m copies a volume of node n, and a copy waits until it
// is allowed.
type slow struct {
	*cluster
	n, m    *Manager
	id      string
	copies  atomic.Int32
	started chan struct{}
	allow   chan struct{}
}

func newSlow(t *testing.T) *slow {
	s := &slow{cluster: newCluster(t, map[string]int64{"n": 10, "m": 10}), started: make(chan struct{}, 10), allow: make(chan struct{})}
	s.n, s.m = s.start("n"), s.start("m")
	s.id = s.volume(s.n).ID
	s.release(s.id)
	s.m.Store.Fault = func(step string) {
		if step == "copy data" {
			s.copies.Add(1)
			s.started <- struct{}{}
			<-s.allow
		}
	}
	return s
}

func (s *slow) update(m *Manager, change func(*pool.Volume)) {
	s.Helper()
	if _, err := m.Store.Update(s.id, func(v *pool.Volume) error { change(v); return nil }); err != nil {
		s.Fatal(err)
	}
}

func (s *slow) waitUntilCopying() {
	s.Helper()
	select {
	case <-s.started:
	case <-time.After(10 * time.Second):
		s.Fatal("no copy was begun")
	}
}

// ended returns a context that has ended, as that of a call whose caller does not wait.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// TestJoin lets calls end before the copy does. It goes on, and is not begun again.
func TestJoin(t *testing.T) {
	s := newSlow(t)
	for range 2 {
		err := s.m.Acquire(ended(t), s.id, s.path)
		s.expect(err, codes.Aborted, "still being copied")
	}
	s.waitUntilCopying()
	if s.left(s.m) != 9 {
		t.Errorf("half copy: %d are left", s.left(s.m))
	}
	if s.begun[s.id] != "m" {
		t.Errorf("before the first byte, a copy was begun for %q", s.begun[s.id])
	}
	s.m.Sweep(t.Context()) // leaves alone what goes on
	close(s.allow)
	err := s.m.Acquire(t.Context(), s.id, s.path)
	s.expect(err, codes.OK, "")
	if got := s.data(s.m, s.id); got != "ready first" || s.copies.Load() != 1 {
		t.Errorf("got %s after %d copies", got, s.copies.Load())
	}
}

// TestReleaseEndsCopy deletes the pod while a volume is being copied: nothing is mounted
// after it was unstaged, and the half copy is gone.
func TestReleaseEndsCopy(t *testing.T) {
	s := newSlow(t)
	err := s.m.Acquire(ended(t), s.id, s.path)
	s.expect(err, codes.Aborted, "still being copied")
	s.waitUntilCopying()
	s.expect(s.m.Release(ended(t), s.id, s.path), codes.Aborted, "still being copied")
	close(s.allow)
	s.expect(s.m.Release(t.Context(), s.id, s.path), codes.OK, "")
	if got := s.data(s.n, s.id) + ", " + s.data(s.m, s.id); got != "ready first, none" || s.left(s.m) != 10 {
		t.Errorf("after it was unstaged: %s", got)
	}
	if _, isCopying := s.m.cancels.Load(s.id); isCopying || s.begun[s.id] != "" {
		t.Error("after it was unstaged, it goes on")
	}
	// A call that has got so far, and whose caller has gone.
	err = s.n.serve(ended(t), s.id, s.path, false, nil)
	s.expect(err, codes.Canceled, "")
	if v, err := s.n.Get(s.id); err != nil || v.StagedAt != "" {
		t.Errorf("staged: %v, %v", v, err)
	}
}

// TestReleaseCompleteCopy unstages a volume whose copy is complete and not served.
func TestReleaseCompleteCopy(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*slow)
		code    codes.Code
		want    string
	}{
		"not the volume's yet": {func(*slow) {}, codes.OK, "none"},
		"named already":        {func(s *slow) { s.named[s.id] = "m" }, codes.OK, "rebuilt first"},
		"cannot be told":       {func(s *slow) { s.away = true }, codes.Unavailable, "rebuilt first"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSlow(t)
			close(s.allow)
			if err := s.m.copyHere(t.Context(), s.id); err != nil {
				t.Fatal(err)
			}
			test.prepare(s)
			s.expect(s.m.Release(t.Context(), s.id, s.path), test.code, "")
			if got := s.data(s.m, s.id); got != test.want {
				t.Errorf("got %s; expected %s", got, test.want)
			}
		})
	}
}

// TestDeletedWhileCopied checks that nothing is left of a volume that was deleted while it
// was being copied.
func TestDeletedWhileCopied(t *testing.T) {
	s := newSlow(t)
	err := s.m.Acquire(ended(t), s.id, s.path)
	s.expect(err, codes.Aborted, "")
	s.waitUntilCopying()
	s.expect(s.m.Delete(t.Context(), s.id), codes.FailedPrecondition, "does not own")
	// What Delete does on node n, while the new node is between two steps.
	half, err := s.m.Store.Get(s.id)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.m.Store.Discard(half); err != nil {
		t.Fatal(err)
	}
	joined := s.m.copies.DoChan(s.id, nil)
	close(s.allow)
	if r := <-joined; r.Err == nil {
		t.Error("the copy of a deleted volume counts")
	}
	s.expect(s.n.Delete(t.Context(), s.id), codes.OK, "")
	if files, err := os.ReadDir(s.pool("m")); err != nil || len(files) != 0 {
		t.Errorf("left: %v, %v", files, err)
	}
}

// TestServedAtHomeWhileCopied has the old node serve a volume that is being copied. The new
// one removes its half copy itself: it may be writing.
func TestServedAtHomeWhileCopied(t *testing.T) {
	s := newSlow(t)
	err := s.m.Acquire(ended(t), s.id, s.path)
	s.expect(err, codes.Aborted, "")
	s.waitUntilCopying()
	err = s.n.Acquire(t.Context(), s.id, s.path)
	s.expect(err, codes.OK, "")
	if s.left(s.m) != 9 {
		t.Error("the half copy does not count as used any more")
	}
	close(s.allow)
	err = s.m.Acquire(t.Context(), s.id, s.path)
	s.expect(err, codes.Aborted, "")
	s.m.Sweep(t.Context())
	if got := s.data(s.n, s.id) + ", " + s.data(s.m, s.id); got != "ready first, none" || s.left(s.m) != 10 {
		t.Error(got)
	}
}

// TestOldCopy moves a volume back to a node that has not yet given up its old copy.
func TestOldCopy(t *testing.T) {
	s := newSlow(t)
	close(s.allow)
	err := s.m.Acquire(t.Context(), s.id, s.path)
	s.expect(err, codes.OK, "")
	s.expect(s.m.Release(t.Context(), s.id, s.path), codes.OK, "")
	s.release(s.id)
	err = s.n.Acquire(t.Context(), s.id, s.path)
	s.expect(err, codes.OK, "")
	s.m.GiveUp(t.Context())
	if got := s.data(s.n, s.id); got != "ready first" || s.left(s.n) != 9 || s.left(s.m) != 10 {
		t.Errorf("back home: %s, %d are left", got, s.left(s.n))
	}
}

// TestBooksFailWhileCopied fails to write the record of a copy that is begun anew. Its room is given back.
func TestBooksFailWhileCopied(t *testing.T) {
	s := newSlow(t)
	close(s.allow)
	s.expect(s.m.copyHere(t.Context(), s.id), codes.OK, "")
	s.update(s.n, func(v *pool.Volume) { v.Generation++ })
	s.m.Store.Fault = func(step string) {
		if step == "rename record rebuilding" {
			if err := os.Remove(filepath.Join(s.root, "books/m", s.id+".json.tmp")); err != nil {
				t.Error(err)
			}
		}
	}
	s.expect(s.m.copyHere(t.Context(), s.id), codes.Internal, "rename")
	if got := s.data(s.m, s.id); got != "none" || s.left(s.m) != 10 || s.begun[s.id] != "" {
		t.Errorf("the copy: %s; %d are left; begun for %q", got, s.left(s.m), s.begun[s.id])
	}
}

// TestOffButRuns has a node that was wrongly taken for off. It leaves alone the complete copy of the node
// that takes over.
func TestOffButRuns(t *testing.T) {
	s := newSlow(t)
	close(s.allow)
	s.expect(s.n.Acquire(t.Context(), s.id, s.path), codes.OK, "")
	s.release(s.id)
	s.off = []string{"n"}
	s.expect(s.m.copyHere(t.Context(), s.id), codes.OK, "")
	s.n.Sweep(t.Context())
	if got := s.data(s.m, s.id); got != "rebuilt first" {
		t.Errorf("node m: %s", got)
	}
	s.expect(s.m.Acquire(t.Context(), s.id, s.path), codes.OK, "")
	if copies := s.copies.Load(); copies != 1 {
		t.Errorf("%d copies", copies)
	}
}

// TestSweep looks at what a copy is that no call asks for.
func TestSweep(t *testing.T) {
	half := func(state pool.State) func(s *slow) {
		return func(s *slow) {
			if err := s.m.copyHere(s.Context(), s.id); err != nil {
				s.Fatal(err)
			}
			s.update(s.m, func(v *pool.Volume) { v.State = state })
		}
	}
	for name, test := range map[string]struct {
		prepare func(*slow)
		want    string // on the new node
		named   string
	}{
		"not complete":       {half(pool.Rebuilding), "none", ""},
		"complete":           {half(pool.Rebuilt), "ready first", "m"},
		"sent elsewhere":     {func(s *slow) { half(pool.Rebuilt)(s); s.sent[s.id] = "n" }, "none", ""},
		"named elsewhere":    {func(s *slow) { half(pool.Rebuilt)(s); s.named[s.id] = "n" }, "none", "n"},
		"cannot be told":     {func(s *slow) { half(pool.Rebuilt)(s); s.away = true }, "rebuilt first", ""},
		"written meanwhile":  {func(s *slow) { half(pool.Rebuilt)(s); s.update(s.n, func(v *pool.Volume) { v.Generation++ }) }, "none", ""},
		"the copy is served": {func(s *slow) { s.write(s.m, s.id, "second") }, "ready second", "m"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSlow(t)
			close(s.allow)
			test.prepare(s)
			s.m.Sweep(t.Context())
			if got := s.data(s.m, s.id); got != test.want || s.named[s.id] != test.named {
				t.Errorf("got %s, named %q; expected %s, %q", got, s.named[s.id], test.want, test.named)
			}
		})
	}
}

// TestShow checks that only a node with the newest data is shown as a home.
func TestShow(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*slow)
		want    int
	}{
		"complete": {func(*slow) {}, 1},
		"old":      {func(s *slow) { s.write(s.m, s.id, "second") }, 0},
		"no data": {func(s *slow) {
			if err := os.RemoveAll(filepath.Join(s.pool("n"), s.id)); err != nil {
				s.Fatal(err)
			}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSlow(t)
			close(s.allow)
			test.prepare(s)
			s.n.Sweep(t.Context())
			if len(s.shown) != test.want {
				t.Errorf("shown: %v; expected %d", s.shown, test.want)
			}
		})
	}
}

// TestDeleteNeverServed deletes a volume that the PersistentVolume names as being on a node
// that has never served its copy: nobody else is asked to delete it.
func TestDeleteNeverServed(t *testing.T) {
	s := newSlow(t)
	close(s.allow)
	if err := s.m.copyHere(t.Context(), s.id); err != nil {
		t.Fatal(err)
	}
	s.named[s.id] = "m"
	s.expect(s.m.Release(t.Context(), s.id, s.path), codes.OK, "")
	s.m.Sweep(t.Context())
	for range 2 {
		s.expect(s.m.Delete(t.Context(), s.id), codes.OK, "")
	}
	s.n.GiveUp(t.Context())
	if got := s.data(s.n, s.id) + ", " + s.data(s.m, s.id); got != "none, none" {
		t.Error(got)
	}
}

// TestFolderKeepsMode rebuilds a folder that its pod has closed to others.
func TestFolderKeepsMode(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 10, "m": 10})
	n, m := c.start("n"), c.start("m")
	v := c.volume(n)
	if err := os.Chmod(v.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	c.release(v.ID)
	c.expect(m.Acquire(t.Context(), v.ID, c.path), codes.OK, "")
	info, err := os.Stat(filepath.Join(c.pool("m"), v.ID))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode after it was rebuilt: %v, %v", info.Mode(), err)
	}
}
