package volume

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"capacityv2.internal/test-e2e/driver/pool"
)

func TestCreate(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 10})
	n := c.start("n")
	for _, test := range []struct {
		name   string
		wanted pool.Volume
		limit  int64
		code   codes.Code
		left   int64
	}{
		{"new", pool.Volume{Name: "a", CapacityBytes: 4 * gi}, 0, codes.OK, 6},
		{"repeated", pool.Volume{Name: "a", CapacityBytes: 4 * gi}, 0, codes.OK, 6},
		{"smaller will do", pool.Volume{Name: "a", CapacityBytes: 3 * gi}, 0, codes.OK, 6},
		{"too large", pool.Volume{Name: "a", CapacityBytes: 3 * gi}, 3 * gi, codes.AlreadyExists, 6},
		{"too small", pool.Volume{Name: "a", CapacityBytes: 5 * gi}, 0, codes.AlreadyExists, 6},
		{"other pools", pool.Volume{Name: "a", CapacityBytes: 4 * gi, Pools: []string{"p"}}, 0, codes.AlreadyExists, 6},
		{"other kind", pool.Volume{Name: "a", CapacityBytes: 4 * gi, Block: true}, 0, codes.AlreadyExists, 6},
		{"no room", pool.Volume{Name: "b", CapacityBytes: 7 * gi}, 0, codes.ResourceExhausted, 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			c.T = t
			_, err := n.Create(t.Context(), test.wanted, test.limit)
			c.expect(err, test.code, "")
			if left := c.left(n); left != test.left {
				t.Errorf("%d are left; expected %d", left, test.left)
			}
		})
	}
}

// unmade cannot be made.
type unmade struct{ Folders }

func (unmade) Make(pool.Volume, bool) error { return fmt.Errorf("no disk: %w", unix.ENOSPC) }

// TestCreateRepeated repeats the call in each state of the volume, and has it fail if it does
// anything. It may only take back what was never a volume.
func TestCreateRepeated(t *testing.T) {
	set := func(change func(*pool.Volume)) func(*cluster, *Manager, *Manager, string) {
		return func(c *cluster, n, _ *Manager, id string) {
			if _, err := n.Store.Update(id, func(v *pool.Volume) error { change(v); return nil }); err != nil {
				c.Fatal(err)
			}
		}
	}
	creating := set(func(v *pool.Volume) { v.State = pool.Creating })
	for name, test := range map[string]struct {
		prepare func(c *cluster, n, m *Manager, id string)
		code    codes.Code
		want    string // on both nodes
	}{
		"creating": {func(c *cluster, n, m *Manager, id string) {
			creating(c, n, m, id)
			c.release(id) // nobody was told of it
		}, codes.ResourceExhausted, "none, none"},
		"creating by older books": {creating, codes.Aborted, "creating first, none"},
		"ready":                   {set(func(*pool.Volume) {}), codes.OK, "ready first, none"},
		"staged":                  {set(func(v *pool.Volume) { v.StagedAt = "/stage" }), codes.OK, "ready first, none"},
		"fenced":                  {set(func(v *pool.Volume) { v.FencedFor = "m" }), codes.Aborted, "ready first, none"},
		"being deleted":           {set(func(v *pool.Volume) { v.FencedFor = pool.Deletion }), codes.Aborted, "ready first, none"},
		"elsewhere":               {move, codes.Aborted, "none, ready second"},
		"on its way back": {func(c *cluster, n, m *Manager, id string) {
			move(c, n, m, id)
			c.release(id)
			c.expect(n.copyHere(c.Context(), id), codes.OK, "")
		}, codes.Aborted, "rebuilt second, ready second"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, map[string]int64{"n": 10, "m": 10})
			n, m := c.start("n"), c.start("m")
			v := c.volume(n)
			test.prepare(c, n, m, v.ID)
			n.Backing = unmade{}
			_, err := n.Create(t.Context(), pool.Volume{Name: "v", CapacityBytes: gi}, 0)
			c.expect(err, test.code, "")
			if got := c.data(n, v.ID) + ", " + c.data(m, v.ID); got != test.want {
				t.Errorf("got %s; expected %s", got, test.want)
			}
		})
	}
}

// TestMakeNotMounted makes a volume whose disk was unmounted after its room was taken. It is not made on
// the disk below.
func TestMakeNotMounted(t *testing.T) {
	for _, backing := range []Backing{Folders{}, Images{}} {
		disk := filepath.Join(t.TempDir(), "disk")
		if err := backing.Make(pool.Volume{Path: filepath.Join(disk, "v"), CapacityBytes: 1, Block: true}, true); err == nil {
			t.Errorf("%T: made", backing)
		}
		if _, err := os.Stat(disk); !os.IsNotExist(err) {
			t.Errorf("%T: on the disk below: %v", backing, err)
		}
	}
}

// TestCreateCancelled has a caller that does not wait, and comes again.
func TestCreateCancelled(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 1})
	n := c.start("n")
	ctx, cancel := context.WithCancel(t.Context())
	n.Store.Fault = func(string) { cancel() }
	for _, ctx := range []context.Context{ctx, t.Context()} {
		v, err := n.Create(ctx, pool.Volume{Name: "v", CapacityBytes: gi}, 0)
		c.expect(err, codes.OK, "")
		if left := c.left(n); left != 0 || v.State != pool.Ready {
			t.Errorf("volume is %s, %d are left", v.State, left)
		}
	}
}

// TestDelete checks which node deletes a volume: the one that has it, and no other.
func TestDelete(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(c *cluster, n, m *Manager, id string)
		on      string
		code    codes.Code
	}{
		"on its node":       {on: "n"},
		"on another node":   {on: "m", code: codes.FailedPrecondition},
		"after it has left": {prepare: move, on: "n", code: codes.FailedPrecondition},
		"where it went":     {prepare: move, on: "m"},
		"with new disks": {prepare: func(c *cluster, n, m *Manager, id string) {
			move(c, n, m, id)
			if err := os.Remove(filepath.Join(c.root, "books/n", id+".json")); err != nil && !os.IsNotExist(err) {
				c.Fatal(err)
			}
		}, on: "n", code: codes.FailedPrecondition},
		"while staged": {prepare: func(c *cluster, n, _ *Manager, id string) {
			err := n.Acquire(c.Context(), id, c.path)
			c.expect(err, codes.OK, "")
		}, on: "n", code: codes.FailedPrecondition},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, map[string]int64{"n": 10, "m": 10})
			nodes := map[string]*Manager{"n": c.start("n"), "m": c.start("m")}
			v := c.volume(nodes["n"])
			if test.prepare != nil {
				test.prepare(c, nodes["n"], nodes["m"], v.ID)
			}
			for range 2 { // idempotent, also after a restart
				c.expect(nodes[test.on].Delete(t.Context(), v.ID), test.code, "")
				nodes[test.on] = c.start(test.on)
			}
			want := int64(19)
			if test.code == codes.OK {
				want = 20
			}
			if left := c.left(nodes["n"]) + c.left(nodes["m"]); left != want {
				t.Errorf("%d are left; expected %d", left, want)
			}
		})
	}
	c := newCluster(t, map[string]int64{"n": 10})
	c.expect(c.start("n").Delete(t.Context(), "not-ours"), codes.OK, "")
	c.expect(c.start("n").Delete(t.Context(), pool.ID("never", "n")), codes.OK, "")
}

// meanwhile does something else when a node asks for its place.
type meanwhile struct {
	Placement
	do func()
}

func (w meanwhile) Ask(ctx context.Context, question Question, v pool.Volume, node string, holders ...string) error {
	err := w.Placement.Ask(ctx, question, v, node, holders...)
	if question == Place {
		w.do()
	}
	return err
}

// TestDeleteOrStage has node n delete a volume while node m takes it over. Not both may
// succeed.
func TestDeleteOrStage(t *testing.T) {
	for name, meet := range map[string]func(c *cluster, n, m *Manager, id string) (staged, deleted error){
		"deleted while it is staged": func(c *cluster, n, m *Manager, id string) (staged, deleted error) {
			m.Placement = meanwhile{c, func() { deleted = n.Delete(c.Context(), id) }}
			staged = m.Acquire(c.Context(), id, c.path)
			return staged, deleted
		},
		"staged while it is deleted": func(c *cluster, n, m *Manager, id string) (staged, deleted error) {
			asked := false
			n.Store.Fault = func(step string) {
				if step == "remove data" && !asked {
					asked = true
					staged = m.Acquire(c.Context(), id, c.path)
				}
			}
			deleted = n.Delete(c.Context(), id)
			return staged, deleted
		},
		"deleted after it was staged": func(c *cluster, n, m *Manager, id string) (staged, deleted error) {
			staged = m.serve(c.Context(), id, c.path, false, nil)
			return staged, n.Delete(c.Context(), id)
		},
		"deleted while it is copied": func(c *cluster, n, m *Manager, id string) (staged, deleted error) {
			m.Store.Fault = func(step string) {
				if step == "copied data" {
					deleted = n.Delete(c.Context(), id)
				}
			}
			c.expect(m.Store.Discard(mustGet(c, m, id)), codes.OK, "")
			return m.Acquire(c.Context(), id, c.path), deleted
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, map[string]int64{"n": 10, "m": 10})
			n, m := c.start("n"), c.start("m")
			v := c.volume(n)
			c.release(v.ID)
			c.expect(m.copyHere(t.Context(), v.ID), codes.OK, "")
			staged, deleted := meet(c, n, m, v.ID)
			if (staged == nil) == (deleted == nil) {
				t.Errorf("staged: %v; deleted: %v; expected one of both", staged, deleted)
			}
			if got := c.data(m, v.ID); staged == nil && got != "ready first" {
				t.Errorf("node m has staged %s", got)
			}
			if deleted == nil && c.data(n, v.ID) != "none" {
				t.Errorf("node n has %s", c.data(n, v.ID))
			}
		})
	}
}

// TestDeletionBegun asks for a volume that a driver had begun to delete when it was killed.
func TestDeletionBegun(t *testing.T) {
	for _, on := range []string{"n", "m"} {
		c := newCluster(t, map[string]int64{"n": 10, "m": 10})
		n, m := c.start("n"), c.start("m")
		v := c.volume(n)
		c.release(v.ID)
		if _, err := n.Store.Update(v.ID, func(v *pool.Volume) error { v.FencedFor = pool.Deletion; return nil }); err != nil {
			t.Fatal(err)
		}
		c.expect(map[string]*Manager{"n": n, "m": m}[on].Acquire(t.Context(), v.ID, c.path), codes.Aborted, "being deleted")
		if c.left(m) != 10 {
			t.Errorf("node m has %s", c.data(m, v.ID))
		}
		c.expect(n.Delete(t.Context(), v.ID), codes.OK, "")
	}
}

func mustGet(c *cluster, m *Manager, id string) pool.Volume {
	c.Helper()
	v, err := m.Store.Get(id)
	if err != nil {
		c.Fatal(err)
	}
	return v
}

func move(c *cluster, n, m *Manager, id string) {
	c.release(id)
	c.write(m, id, "second")
	n.GiveUp(c.Context())
}

// TestDeleteWithoutOthers deletes a volume on a node that cannot see the books of the node that
// made it. It must not say that there is no such volume.
func TestDeleteWithoutOthers(t *testing.T) {
	c := newCluster(t, map[string]int64{"m": 10})
	m := c.start("m")
	c.expect(m.Delete(t.Context(), pool.ID("v", "n")), codes.FailedPrecondition, "does not own")
	c.expect(m.Delete(t.Context(), pool.ID("v", "m")), codes.OK, "")
	c.expect(m.Delete(t.Context(), "unknown"), codes.OK, "")
}
