// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"capacityv2.internal/test-e2e/driver/rebuild"
	"capacityv2.internal/test-e2e/driver/store"
)

const (
	// sweepInterval is how often the volumes are looked at of which something is to be removed.
	sweepInterval = 10 * time.Second
	// mountTime is how long a call may take that stages a volume.
	mountTime = 3 * time.Minute
	// sweepers are how many volumes are looked at side by side, so that one disk that hangs does not keep the others waiting.
	sweepers = 100
)

// Run looks at each volume that this node has when its PersistentVolume changes, until the context ends.
func (n *Node) Run(ctx context.Context) error {
	loop := rebuild.NewLoop(n.API.Client)
	err := loop.On(loop.Core().V1().PersistentVolumes().Informer(), func(_, now any) {
		pv := now.(*corev1.PersistentVolume)
		if !n.API.IsOurs(pv) {
			return
		}
		if _, err := n.Get(pv.Spec.CSI.VolumeHandle); err == nil {
			loop.Add(pv.Spec.CSI.VolumeHandle)
		}
	})
	if err != nil {
		return err
	}
	isOpen := false
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := n.Store.Check(); err != nil {
			klog.FromContext(ctx).Error(err, "Offering nothing, will try again")
			isOpen = false
			return
		}
		copies, err := n.Store.Copies("")
		if err != nil && !isOpen {
			klog.FromContext(ctx).Error(err, "The volumes of these records cannot be used, and their room stays used")
		}
		for _, c := range copies {
			if !isOpen || c.State == store.Half || c.IsDue() {
				loop.Add(c.Handle)
			}
		}
		isOpen = true
	}, sweepInterval)
	loop.Run(ctx, sweepers, n.Sweep)
	return nil
}

// isEnded tells that the claim is gone, and that the volume is to be deleted with it.
func isEnded(pv *corev1.PersistentVolume) bool {
	return (pv.Status.Phase == corev1.VolumeReleased || pv.Status.Phase == corev1.VolumeFailed) && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
}

// Sweep looks at the copies of a volume: after calls that were lost, after the node has come back, and after the volume has
// gone elsewhere.
func (n *Node) Sweep(ctx context.Context, handle string) error {
	k, unlock, err := n.begin(ctx, handle, false)
	if err != nil {
		return err
	}
	defer unlock()
	if !slices.ContainsFunc(k.copies, func(c store.Copy) bool { return k.isWanted(n, c) }) {
		err = n.cancel(ctx, handle)
	}
	if err == nil && k.InUse.Node == n.Name {
		err = n.releaseUnused(ctx, k)
	}
	if err == nil {
		err = n.show(ctx, k)
	}
	if err == nil || err == errReleased {
		err = cmp.Or(n.tidy(ctx, k), err)
	}
	return err
}

// tidy removes copies that do not count, and that nobody wants. A PersistentVolume that is not found may come back from a
// backup. So what is complete stays then, unless this node has seen before that another copy was used. While it is there, and
// is about to be deleted with its claim, what does not count goes at once.
func (n *Node) tidy(ctx context.Context, k *known) (err error) {
	for _, c := range k.copies {
		switch {
		case k.PV != nil && (c.ID == k.Copy || k.isWanted(n, c)):
		case c.State == store.Half, k.PV == nil && c.IsDue(), k.PV != nil && isEnded(k.PV):
			err = errors.Join(err, n.giveUp(ctx, k, c))
		case k.PV != nil:
			err = errors.Join(err, n.retire(ctx, k, c))
		}
	}
	return err
}

// giveUp removes a copy, and before that the flags that name it: nobody may set an affinity for it.
func (n *Node) giveUp(ctx context.Context, k *known, c store.Copy) error {
	if k.Begun.ID == c.ID {
		if err := n.patch(ctx, k, n.API.Cancel(k.Volume, n.Name)); err != nil {
			return err
		}
	}
	return n.Store.Remove(ctx, c)
}

// releaseUnused takes in-use away if nothing can write, as after the node was restarted. The kubelet may never ask for that.
func (n *Node) releaseUnused(ctx context.Context, k *known) error {
	for _, c := range k.copies {
		if err := n.Store.Wait(ctx, c); err != nil { // A mount may need the device.
			return err
		}
		if !c.Block { // What is mounted stays; a driver may have been killed before the mount.
			if err := n.detachLater(c); err != nil {
				return err
			}
		}
		if isAttached, err := n.isAttached(ctx, c); err != nil || isAttached {
			return err
		}
	}
	return n.patch(ctx, k, n.API.Unuse(k.Volume, n.Name))
}

// isAttached waits for what was begun on the disk, such as a mount, and looks then.
func (n *Node) isAttached(ctx context.Context, c store.Copy) (bool, error) {
	if err := n.Store.Wait(ctx, c); err != nil {
		return false, err
	}
	devices, err := attached(c)
	return len(devices) > 0, err
}

// show says that this node has the copy that counts of a released volume, if the list does not.
func (n *Node) show(ctx context.Context, k *known) error {
	c, has := k.current()
	if !has || k.Affinity != nil {
		return nil
	}
	node, err := n.API.Client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	change := n.API.Show(k.Volume, n.Name, node.UID)
	if change != nil {
		err = n.Store.See(ctx, c)
	}
	if err == nil {
		err = n.patch(ctx, k, change)
	}
	return cmp.Or(err, errReleased)
}

// errReleased has the sweep look again: this node may get another Node object.
var errReleased = errors.New("it is released, and this node has it")

// retire removes a complete copy that does not count any more, KeepOld after the one that counts was used, and only while that
// one can be seen. What nobody has written to is removed at once then.
func (n *Node) retire(ctx context.Context, k *known, c store.Copy) error {
	isUsed, keep := k.InUse.ID == k.Copy, max(n.KeepOld, mountTime)
	switch {
	case !isUsed && time.Until(c.RemoveAt) > keep-mountTime: // It was used for a moment: perhaps it cannot be mounted.
		c.RemoveAt = time.Time{}
		return n.Store.Put(c)
	case c.State == store.Ready && (c.RemoveAt.IsZero() && !isUsed || time.Now().Before(c.RemoveAt)):
		return nil
	}
	if isAttached, err := n.isAttached(ctx, c); err != nil || isAttached {
		return cmp.Or(err, status.Errorf(codes.Aborted, "copy %s is still attached", c.ID))
	}
	if err := n.see(ctx, k); err != nil {
		return err
	}
	if c.State == store.Ready && c.RemoveAt.IsZero() {
		c.RemoveAt = time.Now().Add(keep)
		return n.Store.Put(c)
	}
	klog.FromContext(ctx).Info("Removing a copy that does not count", "volume", c.Handle, "copy", c.ID, "for", k.Copy)
	return n.Store.Remove(ctx, c)
}

// see returns an error if the copy that counts cannot be seen, here or elsewhere.
func (n *Node) see(ctx context.Context, k *known) error {
	if own, isHere := k.current(); isHere {
		return n.Store.See(ctx, own)
	}
	file, err := n.open(ctx, k)
	if err != nil {
		return err
	}
	return file.Close()
}
