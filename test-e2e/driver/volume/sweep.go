// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
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
	_, err := volumes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(now any) { n.enqueue(queue, now) },
		UpdateFunc: func(_, now any) { n.enqueue(queue, now) },
		DeleteFunc: func(last any) {
			if gone, ok := last.(cache.DeletedFinalStateUnknown); ok {
				last = gone.Obj
			}
			if pv := last.(*corev1.PersistentVolume); n.API.IsOurs(pv) && isEnded(pv) {
				if s, err := n.opened(); err == nil && s.Has(pv.Spec.CSI.VolumeHandle) {
					n.ended.Store(pv.Name, n.API.VolumeOf(pv))
				}
			}
			n.enqueue(queue, last)
		},
	})
	if err != nil {
		return err
	}
	_, err = own.AddEventHandler(cache.ResourceEventHandlerFuncs{ // It may have come back.
		AddFunc: func(any) { n.enqueueAll(queue, func(store.Copy) bool { return true }) },
		UpdateFunc: func(before, now any) {
			isNew := before.(*corev1.Node).UID != now.(*corev1.Node).UID
			n.enqueueAll(queue, func(store.Copy) bool { return isNew })
		},
	})
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
		n.enqueueAll(queue, func(c store.Copy) bool { return !isOpen || c.State != store.Ready && time.Now().After(c.RemoveAt) })
		isOpen = true
	}, sweepInterval)
	return nil
}

func (n *Node) enqueue(queue workqueue.TypedInterface[string], object any) {
	if pv := object.(*corev1.PersistentVolume); n.API.IsOurs(pv) {
		if s, err := n.opened(); err == nil && s.Has(pv.Spec.CSI.VolumeHandle) {
			queue.Add(pv.Spec.CSI.VolumeHandle)
		}
	}
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
	s, done, err := n.begin(handle)
	if err != nil {
		return err
	}
	defer done()
	k, err := n.look(ctx, s, handle)
	if apierrors.IsNotFound(err) {
		return n.sweepGone(ctx, s, k)
	}
	if err != nil {
		return err
	}
	n.lock.Lock()
	if job := n.copies[handle]; job != nil && !slices.ContainsFunc(k.copies, func(c store.Copy) bool { return rebuild.IsWanted(k.Volume, n.Name, c.ID) }) {
		job.cancel()
	}
	_, isCopying := n.copies[handle]
	n.lock.Unlock()
	if !isCopying {
		if err := n.tidy(ctx, s, &k); err != nil {
			return err
		}
	}
	if err := n.releaseUnused(ctx, s, &k); err != nil {
		return err
	}
	for _, c := range k.copies {
		switch {
		case c.State == store.Old && (c.ID == k.Copy && slices.Contains(k.Owners(), n.Name)):
			_, err = s.Move(ctx, c, store.Ready)
		case c.State == store.Old && isEnded(k.PV):
			err = s.Remove(ctx, c)
		case c.State == store.Old:
			err = n.expire(ctx, s, &k, c)
		case c.State == store.Ready && c.ID == k.Copy && k.Affinity == nil:
			err = n.show(ctx, s, &k, c)
		case c.State == store.Ready && rebuild.IsSuperseded(k.Volume, c.ID):
			err = n.retire(ctx, s, &k, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sweepGone looks at copies without a PersistentVolume. Those that were complete stay, because it may come back from a backup,
// unless this node has seen that it was deleted with its claim, and was elsewhere.
func (n *Node) sweepGone(ctx context.Context, s *store.Store, k known) error {
	if err := n.cancel(ctx, k.handle); err != nil {
		return err
	}
	last, isEnded := n.ended.Load(nameOf(k.handle))
	for _, c := range k.copies {
		var err error
		switch {
		case c.State == store.Creating, c.State == store.Copying, isEnded && (c.State == store.Old || rebuild.IsSuperseded(last.(rebuild.Volume), c.ID)):
			err = s.Remove(ctx, c)
		case c.State == store.Old:
			err = n.expireAt(ctx, s, c, true)
		}
		if err != nil {
			return err
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

// show says that this node has the copy that counts, if the list does not.
func (n *Node) show(ctx context.Context, s *store.Store, k *known, c store.Copy) error {
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

// retire gives a copy up that is old by the PersistentVolume, when the new one was seen.
func (n *Node) retire(ctx context.Context, s *store.Store, k *known, c store.Copy) error {
	if isAttached, err := n.isAttached(ctx, s, c); err != nil || isAttached {
		return cmp.Or(err, status.Errorf(codes.Aborted, "copy %s is still attached", c.ID))
	}
	if _, err := n.successor(ctx, s, k); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Gave up a copy", "volume", k.handle, "copy", c.ID, "for", k.Copy)
	_, err := s.Move(ctx, c, store.Old)
	return err
}

// successor returns the record of the copy that counts, if all of its data is there.
func (n *Node) successor(ctx context.Context, s *store.Store, k *known) (c store.Copy, err error) {
	if own, isHere := k.current(); isHere {
		return own, s.Open(ctx, own)
	}
	size, found := k.PV.Spec.Capacity[corev1.ResourceStorage], store.Copy{}
	err = bounded(ctx, func() (err error) {
		for _, node := range k.Affinity {
			if found, err = n.peer(node).Copy(k.handle, k.Copy, size.Value()); err == nil {
				return nil
			}
		}
		return fmt.Errorf("copy %s of volume %s is on no node of %v: %w", k.Copy, k.handle, k.Affinity, err)
	})
	if err != nil {
		return c, err // found may still be written
	}
	return found, nil
}

// expire removes an old copy KeepOld after the new one was served.
func (n *Node) expire(ctx context.Context, s *store.Store, k *known, c store.Copy) error {
	isServed := k.InUse.Node != "" && k.InUse.ID == k.Copy
	if c.RemoveAt.IsZero() && !isServed {
		next, err := n.successor(ctx, s, k)
		isServed = err == nil && next.Served
	}
	return n.expireAt(ctx, s, c, isServed)
}

func (n *Node) expireAt(ctx context.Context, s *store.Store, c store.Copy, isServed bool) error {
	switch {
	case c.RemoveAt.IsZero() && isServed:
		c.RemoveAt = time.Now().Add(n.KeepOld)
		return s.Put(c)
	case !c.RemoveAt.IsZero() && time.Now().After(c.RemoveAt):
		klog.FromContext(ctx).Info("Removing an old copy", "volume", c.Handle, "copy", c.ID)
		return s.Remove(ctx, c)
	}
	return nil
}
