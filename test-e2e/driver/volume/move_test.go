// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"capacityv2.internal/test-e2e/driver/store"
)

// TestMove drains a node, and then the next one, and the first one again.
func TestMove(t *testing.T) {
	c := newCluster(t)
	v := c.create("n")
	c.cordon("n", "cordoned")
	c.place()
	c.send("m")
	c.read("m", v, "first")
	c.write("m", v, "second")
	if got := c.pv(); got.Affinity[0] != "m" || got.InUse.Node != "" || got.Begun.Node != "" {
		t.Errorf("%+v", got)
	}
	c.sweep(v)
	c.expectCopies("n", v, "first old")
	if c.left("n") != 4 || c.left("m") != 4 {
		t.Errorf("%d and %d Mi are left; expected 4 and 4", c.left("n"), c.left("m"))
	}
	c.cordon("m", "cordoned")
	c.place()
	c.send("o")
	c.write("o", v, "third")
	c.cordon("n", "")
	c.cordon("o", "cordoned")
	c.place()
	c.send("n")
	c.read("n", v, "third")
	c.sweep(v)
	c.expectCopies("m", v, "copy old")
	// An hour later.
	for _, node := range c.nodes {
		node.KeepOld = 0
		for _, old := range node.store.All() {
			if !old.RemoveAt.IsZero() {
				old.RemoveAt = time.Now()
				c.must(node.store.Put(old))
			}
		}
	}
	c.sweep(v)
	c.sweep(v)
	for node, want := range map[string]string{"n": "copy ready", "m": "", "o": ""} {
		c.expectCopies(node, v, want)
	}
	for _, node := range []string{"m", "o"} {
		c.expect(c.nodes[node].Delete(t.Context(), v), codes.FailedPrecondition, "does not own")
	}
	// A node that gets a volume back before it has given its own copy up.
	c.cordon("n", "cordoned")
	c.cordon("m", "")
	c.place()
	c.send("m")
	c.write("m", v, "fourth")
	c.cordon("n", "")
	c.cordon("m", "cordoned")
	c.place()
	c.send("n")
	c.read("n", v, "fourth")
	c.sweep(v)
	c.expectCopies("n", v, "copy old, copy ready")
	c.must(c.nodes["n"].Delete(t.Context(), v))
	c.expectCopies("n", v, "")
}

// TestUncordon uncordons the node while the copy goes on: nothing changes, because the claim was sent elsewhere. When it is
// sent back, the old copy is served, and the half copy is removed.
func TestUncordon(t *testing.T) {
	c := newCluster(t)
	v := c.create("n")
	c.cordon("n", "cordoned")
	c.place()
	c.send("m")
	c.expect(c.nodes["m"].Stage(t.Context(), v, c.path("m")), codes.Aborted, "is being copied")
	c.cordon("n", "")
	c.expect(c.nodes["n"].Stage(t.Context(), v, c.path("n")), codes.Aborted, "elsewhere")
	c.send("n")
	c.write("n", v, "second")
	c.expect(c.nodes["m"].Stage(t.Context(), v, c.path("m")), codes.Aborted, "elsewhere")
	c.unstage("m", v)
	c.expectCopies("m", v, "")
	if c.left("m") != 8 {
		t.Errorf("%d Mi are left; expected 8", c.left("m"))
	}
	// The copy from before is not taken for a new one.
	c.cordon("n", "cordoned")
	c.place()
	c.send("m")
	c.read("m", v, "second")
}

// TestFence refuses to copy what another node may write to, and a write where a copy was begun.
func TestFence(t *testing.T) {
	c := newCluster(t)
	v := c.create("n")
	c.must(c.stage("n", v))
	c.cordon("n", "cordoned")
	c.place()
	c.send("m")
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
	c := newCluster(t)
	v := c.create("n")
	c.must(c.stage("n", v))
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
	c.unmountHere("n", v)
	c.cordon("n", "")
	c.expect(c.stage("n", v), codes.Aborted, "elsewhere")
	c.unstage("n", v)
	c.sweep(v)
	c.expectCopies("n", v, "first old")
}

// unmountHere ends what a node has staged, as a reboot does.
func (c *cluster) unmountHere(node, handle string) {
	c.Helper()
	c.must(c.nodes[node].Mounter.Unmount(c.path(node)))
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

// TestReturnEmpty has a node come back with an empty folder, and with an empty disk: neither shows a copy, offers room or
// says that a volume is gone.
func TestReturnEmpty(t *testing.T) {
	c := newCluster(t)
	v := c.create("n")
	c.must(os.Rename(filepath.Join(c.root, "n"), filepath.Join(c.root, "away")))
	n := c.start("n")
	if c.left("n") != -1 {
		t.Errorf("%d Mi are offered in a folder that is not mounted", c.left("n"))
	}
	c.expect(n.Delete(t.Context(), v), codes.Unavailable, "not mounted")
	c.expect(n.Stage(t.Context(), v, c.path("n")), codes.Unavailable, "not mounted")
	_, err := n.Create(t.Context(), "other", store.Copy{Bytes: size}, 0)
	c.expect(err, codes.Unavailable, "not mounted")
	_ = os.RemoveAll(filepath.Join(c.root, "n"))
	c.must(os.Rename(filepath.Join(c.root, "away"), filepath.Join(c.root, "n")))

	n = c.start("n")
	pool := filepath.Join(c.root, "n", "pools", "p")
	c.must(os.Rename(pool, c.root+"/disk"))
	c.must(os.MkdirAll(filepath.Join(pool, "volumes"), 0o700)) // another disk
	if c.left("n") != -1 {
		t.Errorf("%d Mi are offered on another disk", c.left("n"))
	}
	c.expect(n.Stage(t.Context(), v, c.path("n")), codes.Unavailable, "not the disk of pool p")
	c.expect(n.Delete(t.Context(), v), codes.Unavailable, "not the disk of pool p")
	c.must(os.RemoveAll(pool))
	c.must(os.Rename(c.root+"/disk", pool))
	c.read("n", v, "first")
}

// TestLastCopy keeps an old copy while the other node does not show the new one, whatever its record says.
func TestLastCopy(t *testing.T) {
	c := newCluster(t)
	v := c.create("n")
	c.cordon("n", "cordoned")
	c.place()
	c.send("m")
	c.read("m", v, "first")
	pool := filepath.Join(c.root, "m", "pools", "p")
	c.must(os.Rename(pool, c.root+"/disk")) // the disk of m is gone; its records are not
	c.sweep(v)
	c.expectCopies("n", v, "first ready")
	c.must(os.Rename(c.root+"/disk", pool))
	c.sweep(v)
	c.expectCopies("n", v, "first old")
	c.takeBack()
	c.sweep(v)
	c.expectCopies("n", v, "first ready")
	c.read("n", v, "first")
}

// takeBack does what an administrator does who wants the old copy of n.
func (c *cluster) takeBack() {
	c.Helper()
	pv := c.pv().PV.DeepCopy()
	pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0] = "n"
	delete(pv.Annotations, driver+"/copy")
	_, err := c.server.CoreV1().PersistentVolumes().Update(c.Context(), pv, metav1.UpdateOptions{})
	c.must(err)
	c.send("n")
}

// TestGone removes no complete copy because its PersistentVolume is not found, and one that was given up after an hour.
func TestGone(t *testing.T) {
	c := newCluster(t)
	v := c.create("n")
	pv := c.pv().PV
	c.must(c.server.CoreV1().PersistentVolumes().Delete(t.Context(), "pv", metav1.DeleteOptions{}))
	c.sweep(v)
	c.expectCopies("n", v, "first ready")
	_, err := c.server.CoreV1().PersistentVolumes().Create(t.Context(), pv, metav1.CreateOptions{}) // from a backup
	c.must(err)
	c.read("n", v, "first")
}

// TestEnded removes old copies at once, when the volume is deleted with its claim.
func TestEnded(t *testing.T) {
	c := newCluster(t)
	v := c.create("n")
	leave(c, v)
	c.read("m", v, "first")
	c.sweep(v)
	pv := c.pv().PV.DeepCopy()
	pv.Status.Phase, pv.Spec.PersistentVolumeReclaimPolicy = corev1.VolumeReleased, corev1.PersistentVolumeReclaimDelete
	_, err := c.server.CoreV1().PersistentVolumes().Update(t.Context(), pv, metav1.UpdateOptions{})
	c.must(err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.nodes["n"].Run(ctx) }()
	c.must(c.nodes["m"].Delete(t.Context(), v))
	for deadline := time.Now().Add(10 * time.Second); c.copies("n", v) != "" && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
	}
	c.expectCopies("n", v, "")
	stop()
	c.must(<-ended)
}

// TestDeletedUnseen has the PersistentVolume deleted before the node has given its copy up.
func TestDeletedUnseen(t *testing.T) {
	c := newCluster(t)
	v := c.create("n")
	leave(c, v)
	c.read("m", v, "first")
	last := c.pv()
	c.must(c.server.CoreV1().PersistentVolumes().Delete(t.Context(), "pv", metav1.DeleteOptions{}))
	c.sweep(v)
	c.expectCopies("n", v, "first ready")
	c.nodes["n"].ended.Store("pv", last)
	c.sweep(v)
	c.expectCopies("n", v, "")
	c.expectCopies("m", v, "copy ready")
}

// TestMountFails leaves neither flags nor devices after a mount that has failed, and outdates no copy.
func TestMountFails(t *testing.T) {
	c := newCluster(t)
	v := c.create("n")
	c.cordon("n", "cordoned")
	c.place()
	c.send("m")
	c.nodes["m"].Mounter = broken{c.nodes["m"].Mounter}
	c.expect(c.stage("m", v), codes.Internal, "broken")
	if got := c.pv(); got.InUse.Node != "" {
		t.Errorf("in use on %s", got.InUse.Node)
	}
	c.expectCopies("n", v, "first ready")
	c.start("m")
	c.read("m", v, "first")
}

// TestNoRoom refuses, and changes nothing.
func TestNoRoom(t *testing.T) {
	c := newCluster(t)
	v := c.create("n")
	_, err := c.nodes["m"].Create(t.Context(), "full", store.Copy{Bytes: 8 * mi}, 0)
	c.must(err)
	before := c.server.Writes.Load()
	c.cordon("n", "cordoned")
	c.place()
	c.send("m")
	c.expect(c.stage("m", v), codes.ResourceExhausted, "no pool has enough room")
	if got := c.server.Writes.Load(); got != before+1 || c.pv().Begun.Node != "" {
		t.Errorf("%d writes; expected the release alone", got-before)
	}
	_, err = c.nodes["m"].Create(t.Context(), "more", store.Copy{Bytes: size}, 0)
	c.expect(err, codes.ResourceExhausted, "no pool has enough room")
}

// TestUnstageWhileCopying gives all back.
func TestUnstageWhileCopying(t *testing.T) {
	c := newCluster(t)
	v := c.create("n")
	c.cordon("n", "cordoned")
	c.place()
	c.send("m")
	c.expect(c.nodes["m"].Stage(t.Context(), v, c.path("m")), codes.Aborted, "is being copied")
	c.unstage("m", v)
	if got := c.pv(); got.Begun.Node != "" || got.Copied.Node != "" || c.left("m") != 8 {
		t.Errorf("%+v, and %d Mi are left", got, c.left("m"))
	}
	c.expectCopies("m", v, "")
}

// TestUnmountedByHand takes in-use away after the node was restarted, and not while the data is attached.
func TestUnmountedByHand(t *testing.T) {
	c := newCluster(t)
	v := c.create("n")
	c.must(c.stage("n", v))
	c.start("n")
	c.sweep(v)
	if c.pv().InUse.Node != "n" {
		t.Error("in-use is gone while the volume is mounted")
	}
	c.unmountHere("n", v)
	c.sweep(v)
	for range 100 { // the kernel detaches the device
		if c.sweep(v); c.pv().InUse.Node == "" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("in-use stays")
}

// TestAPIAway has what is staged go on, and nothing else.
func TestAPIAway(t *testing.T) {
	c := newCluster(t)
	v := c.create("n")
	c.server.Before = func(string, *corev1.PersistentVolume) error { return apierrors.NewServiceUnavailable("away") }
	c.expect(c.nodes["n"].Stage(t.Context(), v, c.path("n")), codes.Unavailable, "away")
	if len(c.loops()) > 0 {
		t.Error("attached without in-use")
	}
	c.server.Before = func(string, *corev1.PersistentVolume) error { return errors.New("refused") }
	c.expect(c.nodes["n"].Stage(t.Context(), v, c.path("n")), codes.Internal, "refused")
	c.server.Before = nil
	c.must(c.stage("n", v))
	c.server.Before = func(string, *corev1.PersistentVolume) error { return apierrors.NewServiceUnavailable("away") }
	c.must(c.stage("n", v))
	c.expect(c.nodes["n"].Unstage(t.Context(), v, c.path("n")), codes.Unavailable, "away")
	c.server.Before = nil
	c.unstage("n", v)
}

// TestHungPeer does not keep a node from its own volumes.
func TestHungPeer(t *testing.T) {
	c := newCluster(t)
	v := c.create("n")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := bounded(ctx, func() error { select {} }); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	c.nodes["n"].Peers = filepath.Join(c.root, "not-mounted")
	c.write("n", v, "second")
	c.cordon("n", "cordoned")
	c.place()
	c.send("m")
	c.nodes["m"].Peers = filepath.Join(c.root, "not-mounted")
	c.expect(c.stage("m", v), codes.Unavailable, "no such file")
	c.expectCopies("m", v, "")
}

// TestTwoCopies has a third copy wait, and end while it waits.
func TestTwoCopies(t *testing.T) {
	c := newCluster(t)
	v := c.create("n")
	leave(c, v)
	m := c.nodes["m"]
	for range parallelCopies {
		m.slots <- struct{}{}
	}
	for range 20 {
		c.expect(m.Stage(t.Context(), v, c.path("m")), codes.Aborted, "is being copied")
		time.Sleep(time.Millisecond)
	}
	c.expectCopies("m", v, "copy copying")
	c.unstage("m", v)
	c.expectCopies("m", v, "")
	<-m.slots
	c.read("m", v, "first")
}

// TestAnotherSize does not take what another node has for the volume if it has another size.
func TestAnotherSize(t *testing.T) {
	c := newCluster(t)
	v := c.create("n")
	leave(c, v)
	file := c.nodes["n"].store.Path(c.nodes["n"].store.All()[0])
	c.must(os.Truncate(file, size-512))
	c.expect(c.stage("m", v), codes.Unavailable, "is no file of")
	if got := c.pv(); got.Begun.Node != "" {
		t.Errorf("begun for %s", got.Begun.Node)
	}
	c.must(os.Truncate(file, size))
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
	c := newCluster(t)
	v := c.create("n")
	leave(c, v)
	m := c.nodes["m"]
	k, err := m.look(t.Context(), m.store, v)
	c.must(err)
	c.expect(m.copy(t.Context(), m.store, k, store.Copy{Handle: v, ID: "x", State: store.Ready}), codes.Aborted, "not wanted")
	if got := c.pv(); got.Copied.Node != "" {
		t.Errorf("copied: %v", got.Copied)
	}
}
