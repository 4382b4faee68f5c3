package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"

	"k8s.io/utils/exec"

	"capacityv2.internal/test-e2e/driver/pool"
)

// TestPeerIsNotBelieved has a node that says its data is a folder of the host. It is neither copied nor removed.
func TestPeerIsNotBelieved(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 10, "m": 10})
	n := c.start("n")
	c.start("m")
	secret := filepath.Join(t.TempDir(), "secret")
	id := pool.ID("v", "m")
	record := fmt.Sprintf(`{"id":%q,"name":"v","state":"ready","pool":"p","path":%q,"capacityBytes":1}`, id, secret)
	if err := errors.Join(os.Mkdir(secret, 0o700), os.WriteFile(filepath.Join(secret, "link"), []byte("secret"), 0o600),
		os.WriteFile(filepath.Join(c.root, "books/m", id+".json"), []byte(record), 0o600), os.Truncate(filepath.Join(c.root, "books/m/p.pool"), 0)); err != nil {
		t.Fatal(err)
	}
	c.expect(n.Acquire(t.Context(), id, c.path), codes.Unavailable, "cannot be read")
	if got := c.data(n, id); got != "none" {
		t.Errorf("node n has %s", got)
	}
	if _, err := os.Stat(filepath.Join(secret, "link")); err != nil {
		t.Error(err)
	}
}

// TestLinkedImage has a link in the place of an image.
func TestLinkedImage(t *testing.T) {
	dir := t.TempDir()
	v := pool.Volume{Path: filepath.Join(dir, "v"), CapacityBytes: 4, Block: true}
	host := filepath.Join(dir, "host")
	if err := errors.Join(os.Mkdir(v.Path, 0o700), os.WriteFile(host, []byte("host"), 0o600), os.Symlink(host, image(v))); err != nil {
		t.Fatal(err)
	}
	b := Images{Exec: exec.New()}
	if err := b.Check(v); err == nil {
		t.Error("checked")
	}
	if err := b.Make(v, false); err == nil {
		t.Error("made")
	}
	if _, _, _, err := b.Attach(v); err == nil {
		t.Error("attached")
	}
	if data, err := os.ReadFile(host); err != nil || string(data) != "host" {
		t.Errorf("file of the host: %q, %v", data, err)
	}
}

// TestCopyImage has a node that puts more into the folder of a volume than its image. It is not copied.
func TestCopyImage(t *testing.T) {
	dir := t.TempDir()
	from := pool.Volume{Path: filepath.Join(dir, "from"), CapacityBytes: 1, Block: true}
	to := pool.Volume{Path: filepath.Join(dir, "to"), CapacityBytes: 1, Block: true}
	b := Images{}
	if err := errors.Join(b.Make(from, true), os.WriteFile(filepath.Join(from.Path, "more"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	unchanged, err := b.Copy(t.Context(), from, to)
	if err := errors.Join(err, b.Check(to)); err != nil {
		t.Fatal(err)
	}
	if err := unchanged(); err != nil {
		t.Error(err)
	}
	if files, err := os.ReadDir(to.Path); err != nil || len(files) != 1 {
		t.Errorf("copied: %v, %v", files, err)
	}
	if err := os.Truncate(image(from), 1024); err != nil {
		t.Fatal(err)
	}
	if err := unchanged(); err == nil {
		t.Error("it was written, and counts as unchanged")
	}
	if _, err := b.Copy(t.Context(), from, to); err == nil {
		t.Error("an image was copied that takes more room than its volume")
	}
}

// TestBrokenPeer has another node whose books cannot be read. This one serves and creates without it.
func TestBrokenPeer(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 10, "m": 10})
	n, m := c.start("n"), c.start("m")
	v := c.volume(n)
	moved, err := m.Create(t.Context(), pool.Volume{Name: "moved", CapacityBytes: gi}, 0)
	if err := errors.Join(err, os.Remove(filepath.Join(c.root, "books/m/lock")), os.Mkdir(filepath.Join(c.root, "books/m/lock"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c.expect(n.Acquire(t.Context(), v.ID, c.path), codes.OK, "")
	}
	_, err = n.Create(t.Context(), pool.Volume{Name: "new", CapacityBytes: gi}, 0)
	c.expect(err, codes.OK, "")
	// Whether it is there, or has newer data, only that node can say.
	c.expect(n.Acquire(t.Context(), moved.ID, c.path), codes.Unavailable, "")
	c.release(v.ID)
	c.expect(n.Release(t.Context(), v.ID, c.path), codes.OK, "")
	c.expect(n.Acquire(t.Context(), v.ID, c.path), codes.Unavailable, "")
}

// TestContested has a copy that another node had fenced, and that this one has taken the fence from. The other one may
// be about to open its own, so the call fences that first.
func TestContested(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 10, "m": 10})
	n, m := c.start("n"), c.start("m")
	v := c.volume(n)
	c.release(v.ID)
	c.expect(m.copyHere(t.Context(), v.ID), codes.OK, "")
	c.expect(n.unfence(v.ID), codes.OK, "")
	c.named[v.ID] = "n"
	c.expect(n.Acquire(t.Context(), v.ID, c.path), codes.OK, "")
	if other := mustGet(c, m, v.ID); other.FencedFor != "n" {
		t.Errorf("the copy of m is fenced for %q", other.FencedFor)
	}
}

// TestMissingPeer has a volume in no books that can be seen. Others may have it.
func TestMissingPeer(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 10})
	c.expect(c.start("n").Acquire(t.Context(), pool.ID("v", "m"), c.path), codes.Unavailable, "no copy")
}

// TestCutCopy looks for a copy before it is complete, as after a crash. It has another name.
func TestCutCopy(t *testing.T) {
	s := newSlow(t)
	close(s.allow)
	s.m.Store.Fault = func(step string) {
		if step == "copied data" {
			if _, err := os.Stat(mustGet(s.cluster, s.m, s.id).Path); err == nil {
				t.Error("it looks complete")
			}
			panic(killed{})
		}
	}
	if died := (&steps{}).run(func() { _ = s.m.copyHere(t.Context(), s.id) }); !died {
		t.Error("the driver was not killed")
	}
	m := s.start("m")
	if files, err := os.ReadDir(s.pool("m")); err != nil || len(files) != 0 || s.left(m) != 10 {
		t.Errorf("left: %v, %v", files, err)
	}
}

// TestCreateOnce repeats a CreateVolume call for a volume that is elsewhere by its PersistentVolume. No empty one is made.
func TestCreateOnce(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 10})
	n := c.start("n")
	c.named[pool.ID("v", "n")] = "m"
	wanted := pool.Volume{Name: "v", CapacityBytes: gi}
	_, err := n.Create(t.Context(), wanted, 0)
	c.expect(err, codes.Aborted, "")
	// Books from when it was made.
	_, err = n.Store.Reserve(pool.Volume{ID: pool.ID("v", "n"), Name: "v", CapacityBytes: gi, State: pool.Creating})
	c.expect(err, codes.OK, "")
	_, err = n.Create(t.Context(), wanted, 0)
	c.expect(err, codes.Aborted, "")
}

// TestAskedOnce counts what an idle volume asks the API server.
func TestAskedOnce(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 10})
	n := c.start("n")
	c.volume(n)
	for range 5 {
		n.Sweep(t.Context())
	}
	if len(c.shown) != 1 {
		t.Errorf("asked %d times; expected once", len(c.shown))
	}
}
