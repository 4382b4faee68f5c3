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

	"k8s.io/mount-utils"
)

// unmountHere ends what a node has staged, as a reboot does.
func (c *cluster) unmountHere(node string) {
	c.Helper()
	c.must(c.nodes[node].Mounter.Unmount(target(c.path(node))))
}

func (c *cluster) publish(node, handle string) error {
	return c.nodes[node].Publish(c.call, handle, c.path(node), filepath.Join(c.root, "target"), false, false)
}

// TestStagedBefore has a node that was taken for one that is off, and whose pod has not ended. The volume was written to
// elsewhere, and comes back: what is staged is the old copy.
func TestStagedBefore(t *testing.T) {
	c, v := staged(t)
	c.cordon("n", "off")
	c.place()
	c.send("m")
	c.write("m", v, "second")
	c.expect(c.publish("n", v), codes.FailedPrecondition, "is not staged")
	c.cordon("n", "")
	c.drain("m", "n")
	c.expect(c.publish("n", v), codes.FailedPrecondition, "is not staged")
	c.read("n", v, "second")
}

// TestPublishUnused binds nothing of which other nodes do not know that it is used.
func TestPublishUnused(t *testing.T) {
	c, v := staged(t)
	c.cordon("n", "off")
	c.place()
	c.cordon("n", "")
	c.place()
	c.expect(c.publish("n", v), codes.FailedPrecondition, "is not staged")
	c.must(c.stage("n", v))
	c.must(c.publish("n", v))
	// While a call goes on, which may mount, nothing is unmounted.
	unlock, err := c.nodes["n"].lock(v)
	c.must(err)
	c.expect(c.nodes["n"].Unpublish(v, filepath.Join(c.root, "target")), codes.Aborted, "goes on")
	unlock()
	c.must(c.nodes["n"].Unpublish(v, filepath.Join(c.root, "target")))
	c.unstage("n", v)
}

// TestMountFails leaves neither flags nor devices after a mount that has failed, and outdates no copy.
func TestMountFails(t *testing.T) {
	c, v := drained(t)
	c.nodes["m"].Mounter = broken{c.nodes["m"].Mounter, func() { c.sweep(v) }}
	c.expect(c.stage("m", v), codes.Unavailable, "broken")
	if got := c.pv(); got.InUse.Node != "" {
		t.Errorf("in use on %s", got.InUse.Node)
	}
	c.sweep(v)
	c.expectCopies("n", v, "first ready")
	c.start("m")
	c.read("m", v, "first")
}

// TestUnmountedByHand takes in-use away after the node was restarted, and not while the data is attached.
func TestUnmountedByHand(t *testing.T) {
	c, v := staged(t)
	c.start("n")
	c.sweep(v)
	if c.pv().InUse.Node != "n" {
		t.Error("in-use is gone while the volume is mounted")
	}
	c.must(os.WriteFile(filepath.Join(target(c.path("n")), "file"), []byte("second"), 0o600))
	c.unmountHere("n")
	c.expectUnused(v)
	c.read("n", v, "second")
}

// TestNeverMounted detaches what a driver has attached that was killed before the mount.
func TestNeverMounted(t *testing.T) {
	c := newCluster(t)
	v := c.create("n")
	c.start("n")
	c.killedAt("n", "mount", func() { _ = c.stage("n", v) })
	if len(c.loops()) == 0 {
		t.Error("nothing is attached")
	}
	c.start("n")
	c.expectUnused(v)
}

// TestSlowMount has a call end before its mount. Its device is not detached before that: it would be another volume's.
func TestSlowMount(t *testing.T) {
	c := newCluster(t)
	v := c.create("n")
	n := c.nodes["n"]
	attached, hangs := make(chan bool), make(chan bool)
	n.Mounter = broken{n.Mounter, func() { close(attached); <-hangs }}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Stage(ctx, v, c.path("n")) }()
	<-attached
	cancel()
	c.expect(<-ended, codes.Aborted, "it hangs")
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	c.expect(n.Sweep(short, v), codes.Unknown, "it hangs")
	if len(c.loops()) != 1 {
		t.Errorf("attached: %v", c.loops())
	}
	close(hangs)
	c.expectUnused(v)
}

// expectUnused expects that nothing is attached soon, and that others know.
func (c *cluster) expectUnused(handle string) {
	c.Helper()
	for range 100 { // the kernel detaches the device
		if c.sweep(handle); c.pv().InUse.Node == "" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.Errorf("in use on %s; attached: %v", c.pv().InUse.Node, c.loops())
}

// broken mounts nothing. Meanwhile, other nodes see that the volume is in use.
type broken struct {
	mount.Interface
	meanwhile func()
}

func (b broken) Mount(string, string, string, []string) error {
	b.meanwhile()
	return errors.New("broken")
}
