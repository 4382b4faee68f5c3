package volume

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"capacityv2.internal/test-e2e/driver/pool"
)

func TestCreate(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 10, "m": 3, "o": 2})
	n := c.start("n")
	c.start("m")
	c.start("o")
	for _, test := range []struct {
		name string
		Request
		code codes.Code
		left int64
	}{
		{"new", Request{Name: "a", Bytes: 4 * gi, Copies: 1}, codes.OK, 6},
		{"repeated", Request{Name: "a", Bytes: 4 * gi, Copies: 1}, codes.OK, 6},
		{"smaller will do", Request{Name: "a", Bytes: 3 * gi, Copies: 1}, codes.OK, 6},
		{"too large", Request{Name: "a", Bytes: 3 * gi, LimitBytes: 3 * gi, Copies: 1}, codes.AlreadyExists, 6},
		{"too small", Request{Name: "a", Bytes: 5 * gi, Copies: 1}, codes.AlreadyExists, 6},
		{"other pools", Request{Name: "a", Bytes: 4 * gi, Pools: []string{"p"}, Copies: 1}, codes.AlreadyExists, 6},
		{"no room", Request{Name: "b", Bytes: 7 * gi, Copies: 1}, codes.ResourceExhausted, 6},
		{"no room for a copy", Request{Name: "b", Bytes: 4 * gi, Copies: 2}, codes.ResourceExhausted, 6},
		{"copies", Request{Name: "b", Bytes: 2 * gi, Copies: 3}, codes.OK, 4},
		{"no room after copies", Request{Name: "c", Bytes: 2 * gi, Copies: 2}, codes.ResourceExhausted, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			c.T = t
			v, err := n.Create(t.Context(), test.Request)
			c.expect(err, test.code, "")
			if left := c.left(n); left != test.left {
				t.Errorf("%d are left; expected %d", left, test.left)
			}
			if err == nil && len(v.Copies) != test.Copies {
				t.Errorf("copies on %v; expected %d", v.Copies, test.Copies)
			}
		})
	}
}

// TestCreateKilled kills the driver at each step. Then there is the volume, or nothing:
// no room is lost, on no node.
func TestCreateKilled(t *testing.T) {
	steps := 0
	for n := 1; ; n++ {
		c := newCluster(t, map[string]int64{"n": 10, "m": 10})
		m := c.start("m")
		request := Request{Name: "v", Bytes: gi, Copies: 2}
		driver := c.start("n")
		died := killAt(n, driver, func() { _, err := driver.Create(t.Context(), request); c.expect(err, codes.OK, "") })

		driver = c.start("n")
		v, err := driver.Get(pool.ID("v", "n"))
		want := int64(10)
		if err == nil {
			want = 9
			if got := c.data(m, v.ID); got != "ready" {
				t.Errorf("killed at step %d: there is a volume, and its copy is %s", n, got)
			}
		}
		if left := []int64{c.left(driver), c.left(m)}; left[0] != want || left[1] != want {
			t.Errorf("killed at step %d: %d are left; expected %d", n, left, want)
		}
		if _, err := driver.Create(t.Context(), request); err != nil || c.left(driver) != 9 || c.left(m) != 9 {
			t.Errorf("killed at step %d: repeated: %v", n, err)
		}
		if !died {
			break
		}
		steps++
	}
	if steps < 10 {
		t.Errorf("%d steps were found; expected at least 10", steps)
	}
}

// TestCreateCancelled has a caller that does not wait, and comes again.
func TestCreateCancelled(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 1})
	n := c.start("n")
	n.CreateDelay = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := n.Create(ctx, Request{Name: "v", Bytes: gi, Copies: 1})
	c.expect(err, codes.DeadlineExceeded, "")
	if left := c.left(n); left != 0 {
		t.Errorf("%d are left before it comes again; expected 0", left)
	}
	n.CreateDelay = 0
	v, err := n.Create(t.Context(), Request{Name: "v", Bytes: gi, Copies: 1})
	c.expect(err, codes.OK, "")
	if v.State != pool.Ready {
		t.Errorf("volume is %s", v.State)
	}
	n.CreateDelay = time.Hour // not for one that exists
	ctx, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = n.Create(ctx, Request{Name: "v", Bytes: gi, Copies: 1})
	c.expect(err, codes.OK, "")
}

func TestExpand(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 10, "m": 3})
	n, m := c.start("n"), c.start("m")
	v := c.volume(n, 2)
	for _, test := range []struct {
		bytes, want int64
		code        codes.Code
	}{{2, 2, codes.OK}, {1, 2, codes.OK}, {4, 2, codes.ResourceExhausted}, {3, 3, codes.OK}} {
		_, err := n.Expand(t.Context(), v.ID, test.bytes*gi)
		c.expect(err, test.code, "")
		if left := []int64{c.left(n), c.left(m)}; left[0] != 10-test.want || left[1] != 3-test.want {
			t.Errorf("to %d: %d are left; expected a volume of %d", test.bytes, left, test.want)
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
			if err := os.Remove(filepath.Join(c.root, "n/volumes", id+".json")); err != nil {
				c.Fatal(err)
			}
		}, on: "n", code: codes.FailedPrecondition},
		"while staged": {prepare: func(c *cluster, n, _ *Manager, id string) {
			_, err := n.Acquire(c.Context(), id, "/stage")
			c.expect(err, codes.OK, "")
		}, on: "n", code: codes.FailedPrecondition},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, map[string]int64{"n": 10, "m": 10})
			nodes := map[string]*Manager{"n": c.start("n"), "m": c.start("m")}
			v := c.volume(nodes["n"], 1)
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

// TestDeleteKilled kills the driver at each step. After a restart, there is the volume
// with its data, or nothing that takes room.
func TestDeleteKilled(t *testing.T) {
	steps := 0
	for step := 1; ; step++ {
		c := newCluster(t, map[string]int64{"n": 10, "m": 10})
		c.start("m")
		n := c.start("n")
		v := c.volume(n, 2)
		died := killAt(step, n, func() { c.expect(n.Delete(t.Context(), v.ID), codes.OK, "") })
		n, m := c.start("n"), c.start("m")
		for _, driver := range []*Manager{n, m} {
			if got, left := c.data(driver, v.ID), c.left(driver); (got != "ready first" || left != 9) && left != 10 {
				t.Errorf("killed at step %d: %s has %s, and %d are left", step, driver.Store.Node, got, left)
			}
		}
		c.expect(n.Delete(t.Context(), v.ID), codes.OK, "")
		if left := c.left(n) + c.left(m); left != 20 {
			t.Errorf("killed at step %d: %d are left after it was repeated; expected 20", step, left)
		}
		if !died {
			break
		}
		steps++
	}
	if steps < 10 {
		t.Errorf("%d steps were found; expected at least 10", steps)
	}
}

func move(c *cluster, _, m *Manager, id string) {
	c.release(id)
	c.write(m, id, "second")
}
