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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"capacityv2.internal/test-e2e/driver/rebuild"
	"capacityv2.internal/test-e2e/driver/store"
)

const (
	// sweepTime is how long one look may take, and sweepInterval how often all volumes are looked at that are not as they
	// should be.
	sweepTime     = 30 * time.Second
	sweepInterval = 10 * time.Second
	// mountTime is how long a call may take that stages a volume.
	mountTime = 3 * time.Minute
	// sweepers are how many volumes are looked at side by side, so that one disk that hangs does not keep the others waiting.
	sweepers = 4
)

// Run looks at each volume that this node has when its PersistentVolume changes, or the Node object, until the context ends.
func (n *Node) Run(ctx context.Context) error {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](500*time.Millisecond, time.Minute))
	volumes := informers.NewSharedInformerFactory(n.API.Client, 0).Core().V1().PersistentVolumes().Informer()
	own := informers.NewSharedInformerFactoryWithOptions(n.API.Client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, n.Name).String()
	})).Core().V1().Nodes().Informer()
	err := errors.Join(rebuild.OnChange(volumes, func(_, now any) {
		pv := now.(*corev1.PersistentVolume)
		if !n.API.IsOurs(pv) {
			return
		}
		if _, err := n.Get(pv.Spec.CSI.VolumeHandle); err == nil {
			if isEnded(pv) {
				n.ended.Store(pv.Name, n.API.VolumeOf(pv).Copy)
			} else {
				n.ended.Delete(pv.Name)
			}
			queue.Add(pv.Spec.CSI.VolumeHandle)
		}
	}), rebuild.OnChange(own, func(before, now any) {
		if old, ok := before.(*corev1.Node); !ok || old.UID != now.(*corev1.Node).UID { // It may have come back.
			n.enqueueAll(queue, func(store.Copy) bool { return true })
		}
	}))
	if err != nil {
		return err
	}
	go volumes.RunWithContext(ctx)
	go own.RunWithContext(ctx)
	defer context.AfterFunc(ctx, queue.ShutDown)()
	isOpen := false
	for range sweepers {
		go wait.UntilWithContext(ctx, func(ctx context.Context) {
			for n.sweepNext(ctx, queue) {
			}
		}, time.Second)
	}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := n.Start(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "Offering nothing, will try again")
			return
		}
		n.enqueueAll(queue, func(c store.Copy) bool { return !isOpen || c.State == store.Half || c.IsDue() })
		isOpen = true
	}, sweepInterval)
	return nil
}

// isEnded tells that the claim is gone, and that the volume is to be deleted with it.
func isEnded(pv *corev1.PersistentVolume) bool {
	return (pv.Status.Phase == corev1.VolumeReleased || pv.Status.Phase == corev1.VolumeFailed) && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
}

func (n *Node) enqueueAll(queue workqueue.TypedInterface[string], isWanted func(store.Copy) bool) {
	s, err := n.opened()
	if err != nil {
		return
	}
	for _, c := range s.All() {
		if isWanted(c) {
			queue.Add(c.Handle)
		}
	}
}

func (n *Node) sweepNext(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string]) bool {
	handle, ended := queue.Get()
	if ended {
		return false
	}
	defer queue.Done(handle)
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	if err := n.Sweep(ctx, handle); err != nil {
		if !apierrors.IsConflict(err) {
			klog.FromContext(ctx).V(2).Info("Volume is not as it should be, will try again", "volume", handle, "reason", err)
		}
		queue.AddRateLimited(handle)
		return true
	}
	queue.Forget(handle)
	return true
}

// Sweep looks at the copies of a volume: after calls that were lost, after the node has come back, and after the volume has
// gone elsewhere.
func (n *Node) Sweep(ctx context.Context, handle string) error {
	s, done, err := n.beginHere(handle)
	if err != nil {
		return err
	}
	defer done()
	k, err := n.look(ctx, s, handle)
	isGone := apierrors.IsNotFound(err)
	if err != nil && !isGone {
		return err
	}
	isWanted := func(c store.Copy) bool { return rebuild.IsWanted(k.Volume, n.Name, c.ID) }
	if isGone || !slices.ContainsFunc(k.copies, isWanted) {
		if err := n.cancel(ctx, handle); err != nil {
			return err
		}
	}
	if isGone {
		return n.tidyGone(ctx, s, k)
	}
	if err := n.releaseUnused(ctx, s, &k); err != nil {
		return err
	}
	if err := n.show(ctx, s, &k); err != nil {
		return err
	}
	return n.tidy(ctx, s, &k)
}

// tidy removes copies that do not count, and that nobody wants.
func (n *Node) tidy(ctx context.Context, s *store.Store, k *known) (err error) {
	for _, c := range k.copies {
		switch {
		case c.ID == k.Copy, rebuild.IsWanted(k.Volume, n.Name, c.ID):
		case c.State == store.Half, isEnded(k.PV):
			err = errors.Join(err, s.Remove(ctx, c))
		default:
			err = errors.Join(err, n.retire(ctx, s, k, c))
		}
	}
	return err
}

// tidyGone is for copies without a PersistentVolume. It may come back from a backup, so what is complete stays, unless this
// node has seen that it was deleted with its claim, and did not count, or that the new one was served.
func (n *Node) tidyGone(ctx context.Context, s *store.Store, k known) error {
	copyID, isEnded := n.ended.Load(nameOf(k.handle))
	for _, c := range k.copies {
		if c.State == store.Half || c.IsDue() || isEnded && c.ID != copyID {
			if err := s.Remove(ctx, c); err != nil {
				return err
			}
		}
	}
	n.ended.Delete(nameOf(k.handle))
	return nil
}

// releaseUnused takes in-use away if nothing can write, as after the node was restarted. The kubelet may never ask for that.
func (n *Node) releaseUnused(ctx context.Context, s *store.Store, k *known) error {
	if k.InUse.Node != n.Name {
		return nil
	}
	for _, c := range k.copies {
		if !c.Block { // What is mounted stays; a driver may have been killed before the mount.
			if err := n.detachLater(c); err != nil {
				return err
			}
		}
		if isAttached, err := n.isAttached(ctx, s, c); err != nil || isAttached {
			return err
		}
	}
	return n.patch(ctx, k, n.API.Unuse(k.Volume, n.Name))
}

// isAttached waits for what was begun on the disk, such as a mount, and looks then.
func (n *Node) isAttached(ctx context.Context, s *store.Store, c store.Copy) (bool, error) {
	if err := s.Wait(ctx, c); err != nil {
		return false, err
	}
	devices, err := attached(c)
	return len(devices) > 0, err
}

// show says that this node has the copy that counts of a released volume, if the list does not.
func (n *Node) show(ctx context.Context, s *store.Store, k *known) error {
	c, has := k.current()
	if !has || k.Affinity != nil {
		return nil
	}
	cluster, err := n.API.Cluster(ctx, k.Volume, n.Name)
	if err != nil {
		return err
	}
	node, exists := cluster.Nodes[n.Name]
	change := n.API.Show(k.Volume, n.Name, node.UID)
	if !exists || change == nil {
		return nil
	}
	if err := s.Open(ctx, c); err != nil {
		return err
	}
	return n.patch(ctx, k, change)
}

// retire removes a complete copy that does not count any more, KeepOld after the one that counts was used, and only while that
// one can be seen. What nobody has written to is removed at once then.
func (n *Node) retire(ctx context.Context, s *store.Store, k *known, c store.Copy) error {
	isUsed := k.InUse.ID == k.Copy
	switch {
	case !isUsed && time.Until(c.RemoveAt) > n.KeepOld-mountTime: // It was used for a moment: perhaps it cannot be mounted.
		c.RemoveAt = time.Time{}
		return s.Put(c)
	case c.State == store.Ready && (c.RemoveAt.IsZero() && !isUsed || time.Now().Before(c.RemoveAt)):
		return nil
	}
	if isAttached, err := n.isAttached(ctx, s, c); err != nil || isAttached {
		return cmp.Or(err, status.Errorf(codes.Aborted, "copy %s is still attached", c.ID))
	}
	if own, isHere := k.current(); isHere {
		if err := s.Open(ctx, own); err != nil {
			return err
		}
	} else if err := n.see(ctx, k); err != nil {
		return err
	}
	if c.State == store.Ready && c.RemoveAt.IsZero() {
		c.RemoveAt = time.Now().Add(n.KeepOld)
		return s.Put(c)
	}
	klog.FromContext(ctx).Info("Removing a copy that does not count", "volume", c.Handle, "copy", c.ID, "for", k.Copy)
	return s.Remove(ctx, c)
}
