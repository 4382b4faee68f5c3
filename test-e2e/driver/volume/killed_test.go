// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"capacityv2.internal/test-e2e/driver/store"
)

// TestKilled kills the driver at each change that it makes, in each call. Afterwards the call is repeated, the data is there,
// and no room is lost.
func TestKilled(t *testing.T) {
	for _, test := range []struct {
		name, node string
		// before brings the volume of n to where do begins. do is what is killed, and after repeats it, if need be.
		before    func(c *cluster, v string)
		do, after func(c *cluster, v string)
		// n and m are what the nodes have in the end.
		n, m string
	}{
		{"stage", "n", nil,
			func(c *cluster, v string) { _ = c.stage("n", v) },
			func(c *cluster, v string) { c.must(c.stage("n", v)); c.unstage("n", v) },
			"first ready", ""},
		{"unstage", "n",
			func(c *cluster, v string) { c.must(c.stage("n", v)) },
			func(c *cluster, v string) { _ = c.nodes["n"].Unstage(c.call, v, c.path("n")) },
			func(c *cluster, v string) { c.unstage("n", v) },
			"first ready", ""},
		{"rebuild", "m", func(c *cluster, _ string) { c.drain("n", "m") },
			func(c *cluster, v string) { _ = c.stage("m", v) },
			func(c *cluster, v string) { c.read("m", v, "first"); c.sweep(v) },
			"first old", "copy ready"},
		{"rebuild, and the pod goes away", "m", func(c *cluster, _ string) { c.drain("n", "m") },
			func(c *cluster, v string) { _ = c.stage("m", v) },
			func(c *cluster, v string) {
				c.place()
				c.unstage("m", v)
				if c.pv().Affinity == nil { // it has not come so far
					c.send("n")
					c.cordon("n", "")
					c.place()
					c.sweep(v)
					c.read("n", v, "first")
					c.expectCopies("m", v, "")
				} else {
					c.read("m", v, "first")
				}
			}, "", ""},
		{"unstage while copying", "m",
			func(c *cluster, v string) {
				c.drain("n", "m")
				for c.pv().Copied.Node == "" {
					_ = c.nodes["m"].Stage(c.call, v, c.path("m"))
					time.Sleep(time.Millisecond)
				}
			},
			func(c *cluster, v string) { _ = c.nodes["m"].Unstage(c.call, v, c.path("m")) },
			func(c *cluster, v string) { c.unstage("m", v) },
			"first ready", ""},
		{"give up", "n",
			func(c *cluster, v string) { c.drain("n", "m"); c.must(c.stage("m", v)) },
			func(c *cluster, v string) { _ = c.nodes["n"].Sweep(c.call, v) },
			func(c *cluster, v string) { c.sweep(v); c.unstage("m", v); c.read("m", v, "first") },
			"first old", "copy ready"},
		{"remove", "n",
			func(c *cluster, v string) { c.drain("n", "m"); c.read("m", v, "first"); c.later(time.Hour) },
			func(c *cluster, v string) { _ = c.nodes["n"].Sweep(c.call, v) },
			func(c *cluster, v string) { c.sweep(v); c.read("m", v, "first") },
			"", "copy ready"},
		{"go back", "n",
			func(c *cluster, v string) {
				c.drain("n", "m")
				c.read("m", v, "first")
				c.takeBack()
			},
			func(c *cluster, v string) { _ = c.stage("n", v) },
			func(c *cluster, v string) { c.sweep(v); c.read("n", v, "first") },
			"first ready", "copy old"},
		{"delete", "n", nil,
			func(c *cluster, v string) { _ = c.nodes["n"].Delete(c.call, v) },
			func(c *cluster, v string) { c.must(c.nodes["n"].Delete(c.call, v)) },
			"", ""},
	} {
		for at := 1; ; at++ {
			step := "none"
			t.Run(fmt.Sprintf("%s/%d", test.name, at), func(t *testing.T) {
				c := newCluster(t)
				v := c.create("n")
				if test.before != nil {
					test.before(c, v)
				}
				c.start(test.node) // counts from here
				step = c.killed(test.node, at, func() { test.do(c, v) })
				t.Logf("killed at %q", step)
				c.start(test.node)
				c.sweep(v)
				test.after(c, v)
				if test.n+test.m != "" || test.name == "delete" {
					c.expectCopies("n", v, test.n)
					c.expectCopies("m", v, test.m)
				}
				for node, n := range c.nodes {
					used := int64(0)
					for _, copy := range n.all() {
						used += copy.Bytes / mi
					}
					if c.left(node) != 8-used {
						t.Errorf("%s has %d Mi left, and copies of %d of 8Mi", node, c.left(node), used)
					}
				}
			})
			if step == "" || t.Failed() {
				break
			}
			if at > 60 {
				t.Fatal("it does not come to an end")
			}
		}
	}
}

// TestKilledCreate kills the driver while it makes a volume. The call is repeated, or never comes again.
func TestKilledCreate(t *testing.T) {
	for at := 1; ; at++ {
		c := newCluster(t)
		c.start("n") // counts from here
		step := c.killed("n", at, func() {
			_, _ = c.nodes["n"].Create(c.call, volumeName, store.Copy{Bytes: size}, 0)
		})
		c.start("n")
		if step == "" {
			return
		}
		c.sweep(volumeName + "@n")
		if got := c.copies("n", volumeName+"@n"); got != "" && got != "first ready" {
			t.Errorf("killed at %s: n has %q", step, got)
		}
		made, err := c.nodes["n"].Create(t.Context(), volumeName, store.Copy{Bytes: size}, 0)
		c.must(err)
		c.bind(made.Handle, "n")
		c.write("n", made.Handle, "first")
		c.read("n", made.Handle, "first")
		if c.left("n") != 4 {
			t.Errorf("killed at %s: %d Mi are left; expected 4", step, c.left("n"))
		}
	}
}

// death ends the goroutines of a node at a step, and all that go on later: deferred calls change nothing either.
type death struct {
	lock  sync.Mutex
	steps []string
	at    int
	name  string
	dead  bool
	// kill ends the calls that wait for a goroutine that is dead.
	kill context.CancelFunc
}

func (d *death) step(name string) {
	d.lock.Lock()
	d.steps = append(d.steps, name)
	d.dead = d.dead || len(d.steps) == d.at || name == d.name
	dead := d.dead
	d.lock.Unlock()
	if dead {
		d.kill()
		runtime.Goexit()
	}
}

func (d *death) isDead() bool {
	d.lock.Lock()
	defer d.lock.Unlock()
	return d.dead
}

// killed runs something on a node, which is killed at a step. It returns the step, or nothing if it did not come to that.
func (c *cluster) killed(node string, at int, do func()) string {
	d := c.death[node]
	d.at = at
	c.call, d.kill = context.WithCancel(c.Context())
	defer func() { c.call = c.Context() }()
	ended := make(chan bool)
	go func() {
		defer close(ended)
		do()
	}()
	<-ended
	if !d.isDead() {
		return ""
	}
	return d.steps[len(d.steps)-1]
}

// killedAt is the same for a step with a name.
func (c *cluster) killedAt(node, name string, do func()) {
	c.Helper()
	c.death[node].name = name
	if c.killed(node, 0, do) != name {
		c.Fatalf("it does not come to %q", name)
	}
}
