// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"capacityv2.internal/test-e2e/driver/rebuild"
	"capacityv2.internal/test-e2e/driver/store"
)

// TestMove drains a node, and then the next one, and the first one again.
func TestMove(t *testing.T) {
	c, v := moved(t)
	c.write("m", v, "second")
	if got := c.pv(); got.Affinity[0] != "m" || got.InUse.Node != "" || got.Begun.Node != "" {
		t.Errorf("%+v", got)
	}
	c.expectCopies("n", v, "first old")
	c.expectLeft("n", 4)
	c.expectLeft("m", 4)
	c.drain("m", "o")
	c.write("o", v, "third")
	c.cordon("n", "")
	c.drain("o", "n")
	c.read("n", v, "third")
	c.expectCopies("m", v, "copy old")
	c.later(time.Hour)
	c.sweep(v)
	for node, want := range map[string]string{"n": "copy ready", "m": "", "o": ""} {
		c.expectCopies(node, v, want)
	}
	for _, node := range []string{"m", "o"} {
		c.expect(c.nodes[node].Delete(t.Context(), v), codes.FailedPrecondition, "does not own")
	}
	// A node that gets a volume back before it has given its own copy up.
	c.cordon("m", "")
	c.drain("n", "m")
	c.write("m", v, "fourth")
	c.cordon("n", "")
	c.drain("m", "n")
	c.read("n", v, "fourth")
	c.expectCopies("n", v, "copy old, copy ready")
	c.must(c.nodes["n"].Delete(t.Context(), v))
	c.expectCopies("n", v, "")
}

// TestUncordon uncordons the node while the copy goes on: nothing changes, because the claim was sent elsewhere. When it is
// sent back, the old copy is served, and the half copy is removed.
func TestUncordon(t *testing.T) {
	c, v := drained(t)
	c.expect(c.nodes["m"].Stage(t.Context(), v, c.path("m")), codes.Aborted, "is being copied")
	c.cordon("n", "")
	c.expect(c.nodes["n"].Stage(t.Context(), v, c.path("n")), codes.Aborted, "elsewhere")
	c.send("n")
	c.write("n", v, "second")
	c.expect(c.nodes["m"].Stage(t.Context(), v, c.path("m")), codes.Aborted, "elsewhere")
	c.unstage("m", v)
	c.expectCopies("m", v, "")
	c.expectLeft("m", 8)
	c.drain("n", "m") // The copy from before is not taken for a new one.
	c.read("m", v, "second")
}

// TestFence refuses to copy what another node may write to, and a write where a copy was begun.
func TestFence(t *testing.T) {
	c, v := staged(t)
	c.drain("n", "m")
	c.expect(c.nodes["m"].Stage(t.Context(), v, c.path("m")), codes.FailedPrecondition, "in use on node n")
	c.expectCopies("m", v, "") // nothing has changed
	c.must(c.stage("n", v))    // its pod goes on
	c.unstage("n", v)
	c.expect(c.nodes["m"].Stage(t.Context(), v, c.path("m")), codes.Aborted, "is being copied")
	c.expect(c.nodes["n"].Stage(t.Context(), v, c.path("n")), codes.Aborted, "elsewhere")
	c.read("m", v, "first")
}

// TestOutOfService copies from a node that is off, and not from one that was only deleted.
func TestOutOfService(t *testing.T) {
	c, v := staged(t)
	c.cordon("n", "gone")
	c.place()
	c.send("m")
	c.expect(c.stage("m", v), codes.FailedPrecondition, "in use on node n")
	c.cordon("n", "new")
	c.cordon("n", "off")
	c.place()
	c.expect(c.stage("m", v), codes.Unavailable, "no node has volume") // it was recreated, and has shown nothing
	c.sweep(v)
	c.place()
	c.read("m", v, "first")
	// It was off, and comes back: what it has staged is the old copy.
	c.unmountHere("n")
	c.cordon("n", "")
	c.expect(c.stage("n", v), codes.Aborted, "elsewhere")
	c.unstage("n", v)
	c.read("m", v, "first")
	c.expectCopies("n", v, "first old")
}

// TestReturn has a node come back after it was deleted: it shows its copy, and serves it.
func TestReturn(t *testing.T) {
	c := newCluster(t)
	v := c.create("n")
	c.cordon("n", "gone")
	c.place()
	if got := c.pv(); got.Affinity != nil || len(got.Homes) > 0 {
		t.Fatalf("%+v", got)
	}
	c.sweep(v)
	if got := c.pv(); got.Shown.Node != "" {
		t.Errorf("a node without a Node object says that it has the volume: %+v", got.Shown)
	}
	c.cordon("n", "new")
	c.sweep(v)
	c.place()
	if got := c.pv(); len(got.Affinity) != 1 || got.Affinity[0] != "n" {
		t.Errorf("%+v; expected n in the affinity", got)
	}
	c.read("n", v, "first")
}

// TestRecreated has the Node object of a listed node deleted and made again, of which its PersistentVolumes say nothing.
func TestRecreated(t *testing.T) {
	c, _ := drained(t)
	c.server.ClearActions()
	hasLooked := func() bool {
		return slices.ContainsFunc(c.server.Actions(), func(action clienttesting.Action) bool { return action.Matches("get", "nodes") })
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.nodes["n"].Run(ctx) }()
	for deadline := time.Now().Add(10 * time.Second); !hasLooked(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not look at the Node object")
		}
	}
	c.cordon("n", "gone")
	c.cordon("n", "new")
	for deadline := time.Now().Add(10 * time.Second); c.pv().Shown.Node == "" && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
	}
	if got := c.pv().Shown; got.Node != "n" || got.ID != "uid2/first" {
		t.Errorf("shown: %v", got)
	}
	stop()
	c.must(<-ended)
}

// TestRefused has all for which a node makes no copy: it changes nothing then.
func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		// before is what is wrong, and what it returns mends it.
		before func(c *cluster, v string) (mend func())
		code   codes.Code
		text   string
	}{
		"no room": {func(c *cluster, v string) func() {
			made, err := c.nodes["m"].Create(c.Context(), "full", store.Copy{Bytes: 8 * mi}, 0)
			c.must(err)
			_, err = c.nodes["m"].Create(c.Context(), "more", store.Copy{Bytes: size}, 0)
			c.expect(err, codes.ResourceExhausted, "no pool has enough room")
			return func() { c.must(c.nodes["m"].Delete(c.Context(), made.Handle)) }
		}, codes.ResourceExhausted, "no pool has enough room"},
		"the other node cannot be reached": {func(c *cluster, v string) func() {
			c.nodes["m"].Peers = filepath.Join(c.root, "not-mounted")
			return func() { c.nodes["m"].Peers = c.root }
		}, codes.Unavailable, "no such file"},
		"the other node hangs": {func(c *cluster, v string) func() {
			var stop context.CancelFunc
			c.call, stop = context.WithTimeout(c.Context(), 50*time.Millisecond)
			lane := store.NewLane()
			lane <- struct{}{} // somebody looks at it
			c.nodes["m"].lanes.Store("n", lane)
			return func() { stop(); <-lane; c.call = c.Context() }
		}, codes.Unavailable, "node n: not reachable: it hangs"},
		"what it has is of another size": {func(c *cluster, v string) func() {
			file := c.nodes["n"].Store.Path(c.nodes["n"].all()[0])
			c.must(os.Truncate(file, size-512))
			return func() { c.must(os.Truncate(file, size)) }
		}, codes.Unavailable, "is no file of"},
	} {
		t.Run(name, func(t *testing.T) {
			c, v := drained(t)
			mend := test.before(c, v)
			before := c.server.Writes.Load()
			c.expect(c.stage("m", v), test.code, test.text)
			if got := c.server.Writes.Load(); got != before || c.pv().Begun.Node != "" {
				t.Errorf("%d writes", got-before)
			}
			c.expectCopies("m", v, "")
			mend()
			c.read("m", v, "first")
		})
	}
}

// TestAPIAway has what is staged go on, and nothing else. No code is final: something may go on.
func TestAPIAway(t *testing.T) {
	c := newCluster(t)
	v := c.create("n")
	for _, away := range []error{apierrors.NewServiceUnavailable("away"), errors.New("dial tcp: away")} {
		c.server.Before = func(string, *corev1.PersistentVolume) error { return away }
		c.expect(c.nodes["n"].Stage(t.Context(), v, c.path("n")), codes.Unavailable, "away")
		if len(c.loops()) > 0 {
			t.Error("attached without in-use")
		}
		c.server.Before = nil
		c.must(c.stage("n", v))
		c.server.Before = func(string, *corev1.PersistentVolume) error { return away }
		c.must(c.stage("n", v))
		c.expect(c.nodes["n"].Unstage(t.Context(), v, c.path("n")), codes.Unavailable, "away")
		c.server.Before = nil
		c.unstage("n", v)
	}
	c.drain("n", "m")
	c.expect(c.nodes["m"].Stage(t.Context(), v, c.path("m")), codes.Aborted, "is being copied")
	c.server.PrependReactor("get", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("dial tcp: away")
	})
	c.expect(c.nodes["m"].Stage(t.Context(), v, c.path("m")), codes.Unavailable, "away")
}

// TestTwoCopies has a third copy wait, and end while it waits, which gives all back.
func TestTwoCopies(t *testing.T) {
	c, v := drained(t)
	m := c.nodes["m"]
	c.must(m.Slots.Acquire(t.Context(), 2))
	for range 20 {
		c.expect(m.Stage(t.Context(), v, c.path("m")), codes.Aborted, "is being copied")
		time.Sleep(time.Millisecond)
	}
	c.expectCopies("m", v, "copy half")
	c.unstage("m", v)
	c.expectCopies("m", v, "")
	if got := c.pv(); got.Begun.Node != "" {
		t.Errorf("begun: %v", got.Begun)
	}
	m.Slots.Release(1)
	c.expect(m.Stage(t.Context(), v, c.path("m")), codes.Aborted, "is being copied")
	c.unstage("m", v)
	if got := c.pv(); got.Begun.Node != "" || got.Copied.Node != "" {
		t.Errorf("%+v", got)
	}
	c.expectCopies("m", v, "")
	c.expectLeft("m", 8)
	c.read("m", v, "first")
}

// endless is a file that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestCopyEnds ends a copy with its context, and keeps one that is not wanted any more from being called complete.
func TestCopyEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	path := filepath.Join(t.TempDir(), "copy")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- copyData(ctx, endless{}, path, 1<<60) }()
	select {
	case err := <-ended:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v; expected the error of the context", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it goes on")
	}
	c, v := drained(t)
	m := c.nodes["m"]
	k, err := m.look(t.Context(), v)
	c.must(err)
	c.expect(m.copy(t.Context(), k, store.Copy{Handle: v, ID: "x", State: store.Copied}, nil), codes.Aborted, "not wanted")
	if got := c.pv(); got.Copied.Node != "" {
		t.Errorf("copied: %v", got.Copied)
	}
}

// TestHalfCopyLeft has a node not hear that its copy is complete. The claim is sent elsewhere, and nobody asks again.
func TestHalfCopyLeft(t *testing.T) {
	c, v := drained(t)
	m := c.nodes["m"]
	c.server.Before = func(patch string, _ *corev1.PersistentVolume) error {
		if strings.Contains(patch, driver+`/copied":"`) {
			return errors.New("away")
		}
		return nil
	}
	c.expect(m.Stage(t.Context(), v, c.path("m")), codes.Aborted, "is being copied")
	if job, isCopying := m.copies.Load(v); isCopying {
		<-job.(copying).ended
	}
	c.expectCopies("m", v, "copy copied")
	c.send("o")
	c.place()
	c.sweep(v)
	c.expectCopies("m", v, "")
	c.expectLeft("m", 8)
}

// half has a node begin a copy, of which nothing is written.
func (c *cluster) half(node, handle string) store.Copy {
	c.Helper()
	k, err := c.nodes[node].look(c.Context(), handle)
	c.must(err)
	half, err := c.nodes[node].reserve(c.Context(), k)
	c.must(err)
	return half
}

// TestCopyFails has a copy fail. The next call goes on with it, and one that comes with the claim elsewhere leaves nothing.
func TestCopyFails(t *testing.T) {
	c, v := drained(t)
	m := c.nodes["m"]
	half := c.half("m", v)
	data := c.nodes["n"].Store.Path(c.nodes["n"].all()[0])
	content, err := os.ReadFile(data)
	c.must(err)
	c.must(m.Slots.Acquire(t.Context(), 2))
	c.expect(m.Stage(t.Context(), v, c.path("m")), codes.Aborted, "is being copied")
	c.must(os.Truncate(data, size/2))
	m.Slots.Release(2)
	if job, isCopying := m.copies.Load(v); isCopying {
		<-job.(copying).ended
	}
	c.expectCopies("m", v, "copy half")
	c.must(os.WriteFile(data, content, 0o600))
	c.read("m", v, "first")
	if c.pv().Copy != half.ID {
		t.Errorf("copy %s counts; expected %s", c.pv().Copy, half.ID)
	}
}

// TestHalfCopyGone has the disk replaced to which a copy was made: another copy is begun.
func TestHalfCopyGone(t *testing.T) {
	c, v := drained(t)
	m := c.nodes["m"]
	half := c.half("m", v)
	c.must(os.Remove(m.Store.Path(half)))
	c.read("m", v, "first")
	c.sweep(v)
	c.expectCopies("m", v, "copy ready")
}

// TestNameTaken makes no volume if there is a PersistentVolume of the name that another node has.
func TestNameTaken(t *testing.T) {
	c := newCluster(t)
	c.create("n")
	_, err := c.nodes["m"].Create(t.Context(), volumeName, store.Copy{Bytes: size}, 0)
	c.expect(err, codes.Aborted, "exists, and is not here")
	c.expectCopies("m", HandleOf(volumeName, "m"), "")
}

// confirmed has m make a copy that counts, and that nobody has staged yet.
func (c *cluster) confirmed(handle string) {
	c.Helper()
	for deadline := time.Now().Add(10 * time.Second); c.pv().Copy == rebuild.FirstCopy && time.Now().Before(deadline); c.place() {
		_ = c.nodes["m"].Stage(c.call, handle, c.path("m"))
	}
}

// TestUnstageUnconfirmed has the pod go between the two writes that set an affinity: what says which copy counts stays.
func TestUnstageUnconfirmed(t *testing.T) {
	c, v := copied(t)
	if c.change(); !c.pv().IsUnconfirmed {
		t.Fatal("the affinity is not unconfirmed")
	}
	c.expect(c.nodes["m"].Unstage(c.call, v, c.path("m")), codes.Aborted, "about to be confirmed")
	c.place()
	c.unstage("m", v)
	c.read("m", v, "first")
}
