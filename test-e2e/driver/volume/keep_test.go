// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"capacityv2.internal/test-e2e/driver/store"
)

// TestKeep has a volume that was moved from n to m, and what the nodes keep of it, after a while.
func TestKeep(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(c *cluster, v string)
		n, m string
	}{
		"an hour later":       {func(c *cluster, v string) { c.later(time.Hour) }, "", "copy ready"},
		"the new one is away": {func(c *cluster, v string) { c.later(time.Hour); c.Cleanup(c.away("m")) }, "first old", "copy ready"},
		"it is named again":   {func(c *cluster, v string) { c.later(time.Hour); c.takeBack() }, "first old", "copy ready"},
		"it is used again":    {func(c *cluster, v string) { c.later(time.Hour); c.takeBack(); c.write("n", v, "second") }, "first ready", "copy old"},
		"the volume is gone":  {func(c *cluster, v string) { c.remove() }, "first old", "copy ready"},
		"an hour after that":  {func(c *cluster, v string) { c.later(time.Hour); c.remove() }, "", "copy ready"},
		"it counts, and its node comes back": {func(c *cluster, v string) {
			c.takeBack()
			c.cordon("n", "gone")
			c.place()
			c.later(time.Hour)
		}, "first old", "copy ready"},
	} {
		t.Run(name, func(t *testing.T) {
			c, v := moved(t)
			c.expectCopies("n", v, "first old")
			test.do(c, v)
			for range 2 {
				c.sweep(v)
			}
			c.expectCopies("n", v, test.n)
			c.expectCopies("m", v, test.m)
		})
	}
}

func (c *cluster) remove() {
	c.Helper()
	c.must(c.server.CoreV1().PersistentVolumes().Delete(c.Context(), volumeName, metav1.DeleteOptions{}))
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

// TestNotServed has a copy that counts and was never staged, or whose node was killed when it had staged it. It is not
// removed before the next one was seen.
func TestNotServed(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(c *cluster, v string)
		data string
		kept string
	}{
		"never staged": {func(c *cluster, v string) {}, "first", "copy copied"},
		"killed after the mount": {func(c *cluster, v string) {
			c.killedAt("m", "losetup --detach", func() { _ = c.nodes["m"].Stage(c.call, v, c.path("m")) })
			c.start("m")
			c.write("m", v, "second")
		}, "second", "copy ready"},
	} {
		t.Run(name, func(t *testing.T) {
			c, v := drained(t)
			c.confirmed(v)
			c.start("m")
			test.do(c, v)
			c.drain("m", "o")
			c.must(c.stage("o", v))
			c.unstage("o", v)
			back := c.away("o")
			c.sweep(v)
			c.expectCopies("m", v, test.kept)
			back()
			c.read("o", v, test.data)
		})
	}
}

// TestGone removes no complete copy because its PersistentVolume is not found.
func TestGone(t *testing.T) {
	c := newCluster(t)
	v := c.create("n")
	pv := c.pv().PV
	c.remove()
	c.sweep(v)
	c.expectCopies("n", v, "first ready")
	_, err := c.server.CoreV1().PersistentVolumes().Create(t.Context(), pv, metav1.CreateOptions{}) // from a backup
	c.must(err)
	c.read("n", v, "first")
	// So is the record, from when the volume was made: it is not formatted again.
	record := c.nodes["n"].all()[0]
	record.State = store.Half
	c.must(c.nodes["n"].Store.Put(record))
	c.sweep(v)
	_, err = c.nodes["n"].Create(t.Context(), volumeName, store.Copy{Bytes: size}, 0)
	c.expect(err, codes.Aborted, "exists, and is not here")
	c.expect(c.stage("n", v), codes.Unavailable, "copy first is not here")
	record.State = store.Ready
	c.must(c.nodes["n"].Store.Put(record))
	c.read("n", v, "first")
}

// TestEnded removes old copies at once, when the volume is deleted with its claim.
func TestEnded(t *testing.T) {
	c, v := moved(t)
	c.end()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.nodes["n"].Run(ctx) }()
	for deadline := time.Now().Add(10 * time.Second); c.copies("n", v) != "" && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
	}
	c.expectCopies("n", v, "")
	c.must(c.nodes["m"].Delete(t.Context(), v))
	stop()
	c.must(<-ended)
}

// TestEndedBeforeItCounts removes a complete copy whose volume is deleted with its claim before the copy counts.
func TestEndedBeforeItCounts(t *testing.T) {
	c, v := copied(t)
	c.end()
	c.sweep(v)
	if pv := c.pv(); pv.Begun.Node != "" || pv.Copied.Node != "" {
		t.Errorf("begun %v and copied %v name a copy that is gone", pv.Begun, pv.Copied)
	}
	c.expectCopies("m", v, "")
	c.expectCopies("n", v, "first ready")
	c.must(c.nodes["n"].Delete(t.Context(), v))
}

// TestEndedUnconfirmed keeps the copy that is about to count.
func TestEndedUnconfirmed(t *testing.T) {
	c, v := copied(t)
	c.change()
	c.end()
	c.sweep(v)
	c.expectCopies("m", v, "copy copied")
	c.place()
	c.must(c.nodes["m"].Delete(t.Context(), v))
}

// end has the claim of a volume deleted that is to be deleted with it.
func (c *cluster) end() {
	c.Helper()
	pv := c.pv().PV.DeepCopy()
	pv.Status.Phase, pv.Spec.PersistentVolumeReclaimPolicy = corev1.VolumeReleased, corev1.PersistentVolumeReclaimDelete
	_, err := c.server.CoreV1().PersistentVolumes().Update(c.Context(), pv, metav1.UpdateOptions{})
	c.must(err)
}

// TestReturnEmpty has a node come back with an empty folder, and with an empty disk: neither shows a copy, offers room or
// says that a volume is gone.
func TestReturnEmpty(t *testing.T) {
	c := newCluster(t)
	v := c.create("n")
	c.must(os.Rename(filepath.Join(c.root, "n"), filepath.Join(c.root, "away")))
	n := c.start("n")
	c.expectLeft("n", -1)
	c.expect(n.Delete(t.Context(), v), codes.Unavailable, "is not mounted")
	c.expect(n.Stage(t.Context(), v, c.path("n")), codes.Unavailable, "is not mounted")
	_, err := n.Create(t.Context(), "other", store.Copy{Bytes: size}, 0)
	c.expect(err, codes.Unavailable, "is not mounted")
	c.own("n")
	n = c.start("n")
	c.expectLeft("n", 8)
	c.expect(n.Stage(t.Context(), v, c.path("n")), codes.Unavailable, "copy first is not here")
	_ = os.RemoveAll(filepath.Join(c.root, "n"))
	c.must(os.Rename(filepath.Join(c.root, "away"), filepath.Join(c.root, "n")))

	n = c.start("n")
	back := c.away("n")
	c.must(os.MkdirAll(filepath.Join(c.root, "n", "pools", "p", "volumes"), 0o700)) // another disk
	c.expectLeft("n", -1)
	c.expect(n.Stage(t.Context(), v, c.path("n")), codes.Unavailable, "not the disk of pool p")
	c.expect(n.Delete(t.Context(), v), codes.Unavailable, "not the disk of pool p")
	back()
	c.read("n", v, "first")
}

// away takes the disk of a node away, until back is called.
func (c *cluster) away(node string) (back func()) {
	c.Helper()
	pool := filepath.Join(c.root, node, "pools", "p")
	c.must(os.Rename(pool, c.root+"/disk-"+node))
	return func() { c.must(errors.Join(os.RemoveAll(pool), os.Rename(c.root+"/disk-"+node, pool))) }
}

// later has time pass for the copies that nodes have given up.
func (c *cluster) later(passed time.Duration) {
	c.Helper()
	for _, node := range c.nodes {
		for _, old := range node.all() {
			if !old.RemoveAt.IsZero() {
				old.RemoveAt = old.RemoveAt.Add(-passed)
				c.must(node.Store.Put(old))
			}
		}
	}
}

// TestKeepShort keeps an old copy as long as a mount of the new one may take, also if it is to be kept for less.
func TestKeepShort(t *testing.T) {
	c, v := drained(t)
	c.nodes["n"].KeepOld = 0
	c.must(c.stage("m", v))
	for range 2 {
		c.sweep(v)
	}
	c.expectCopies("n", v, "first old")
	c.unstage("m", v) // it could not be mounted
	c.later(mountTime - time.Second)
	c.sweep(v)
	c.expectCopies("n", v, "first ready")
	c.read("m", v, "first")
	c.sweep(v)
	c.expectCopies("n", v, "")
}

// TestOwnDataGone has the copy that counts lost, with a disk that was replaced. The pod can end, and the old copy stays.
func TestOwnDataGone(t *testing.T) {
	c, v := moved(t)
	c.cordon("n", "")
	c.drain("m", "n")
	c.must(c.stage("n", v))
	for _, copy := range c.nodes["n"].all() {
		if copy.ID == c.pv().Copy {
			c.must(os.Remove(c.nodes["n"].Store.Path(copy)))
		}
	}
	c.sweep(v)
	c.later(time.Hour)
	c.unstage("n", v)
	c.expectCopies("n", v, "copy ready, first old")
}

// TestOwnFolderHangs has calls end when the folder of the node hangs.
func TestOwnFolderHangs(t *testing.T) {
	c := newCluster(t)
	v := c.create("n")
	owner := filepath.Join(c.root, "n", "owner")
	c.must(errors.Join(os.Remove(owner), unix.Mkfifo(owner, 0o600))) // Who reads it waits.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		err := c.nodes["n"].Stage(ctx, v, c.path("n"))
		if rooms := c.nodes["n"].Rooms(ctx, ""); len(rooms) > 0 {
			t.Errorf("it offers %v", rooms)
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		c.expect(err, codes.Unavailable, "it hangs")
	case <-time.After(10 * time.Second):
		t.Error("it goes on")
	}
	c.must(os.WriteFile(owner, []byte("n"), 0o600)) // for who waits
}
