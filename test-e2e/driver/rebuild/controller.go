// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
)

// Controller does what [Names.Next] says for all volumes of a driver. What it watches says where to look; what it does
// follows from what the API server says then. Two at once do no harm.
type Controller struct {
	API
	loop    Loop
	volumes corelisters.PersistentVolumeLister
	nodes   corelisters.NodeLister
}

// NewController returns the controller of a driver.
func NewController(api API) *Controller {
	loop := NewLoop(api.Client)
	core := loop.Core().V1()
	return &Controller{API: api, loop: loop, volumes: core.PersistentVolumes().Lister(), nodes: core.Nodes().Lister()}
}

// Run runs until the context ends. What is there at its start counts as changed: nodes may have gone while nobody watched.
func (c *Controller) Run(ctx context.Context) error {
	core := c.loop.Core().V1()
	err := errors.Join(
		c.loop.On(core.PersistentVolumes().Informer(), func(_, now any) { c.loop.Add(now.(*corev1.PersistentVolume).Name) }),
		c.loop.On(core.PersistentVolumeClaims().Informer(), func(before, now any) {
			claim := now.(*corev1.PersistentVolumeClaim)
			if old, ok := before.(*corev1.PersistentVolumeClaim); !ok || old.Annotations[storagehelpers.AnnSelectedNode] != claim.Annotations[storagehelpers.AnnSelectedNode] {
				c.loop.Add(claim.Spec.VolumeName)
			}
		}),
		c.loop.On(core.Nodes().Informer(), func(before, now any) {
			if old, ok := before.(*corev1.Node); ok && nodeOf(old) == nodeOf(now.(*corev1.Node)) {
				return
			}
			volumes, _ := c.volumes.List(labels.Everything())
			for _, pv := range volumes {
				c.loop.Add(pv.Name)
			}
		}))
	if err != nil {
		return err
	}
	c.loop.Run(ctx, 1, c.place)
	return nil
}

// errWaits is returned for a volume that is released, and of which a home can be used, or a copy is complete: a pod that comes
// to run can change what is to be done, and nobody watches pods.
var errWaits = errors.New("it is released, and waits for a pod")

// place changes a volume until there is nothing to change.
func (c *Controller) place(ctx context.Context, name string) error {
	pv, err := c.volumes.Get(name)
	if err != nil || !c.IsOurs(pv) || c.isSettled(c.VolumeOf(pv)) {
		return nil // A cache does not fail: it is not there.
	}
	v, err := c.Volume(ctx, name, pv.Spec.CSI.VolumeHandle)
	for err == nil && v.PV != nil {
		cluster, err := c.Cluster(ctx, v)
		if err != nil {
			return err
		}
		_, isUsable := cluster.present(v.Homes)
		isOpen := v.Affinity == nil && (isUsable || v.Copied.Node != "")
		if !cluster.IsClaimGone && (isOpen || v.IsUnconfirmed) {
			err = c.addPods(ctx, v, &cluster)
		}
		change := c.Next(v, cluster)
		switch {
		case err != nil:
			return err
		case change == nil && isOpen && !cluster.IsClaimGone:
			return errWaits
		case change == nil:
			return nil
		}
		if v, err = c.Patch(ctx, v, change); err != nil {
			return err
		}
	}
	return err
}

// isSettled tells whether a volume is on a usable node by the caches, so that the API server need not be asked.
func (c *Controller) isSettled(v Volume) bool {
	nodes, _ := nodesOf(append([]string{v.InUse.Node}, v.Affinity...), c.nodes.Get)
	isUsable := slices.ContainsFunc(v.Affinity, func(name string) bool { return nodes[name].IsUsable })
	return isUsable && !v.IsUnconfirmed && v.Begun.Node == "" && !nodes[v.InUse.Node].IsOff
}

const (
	// A volume is looked at again after the one, then twice that, up to the other.
	firstRetry = 500 * time.Millisecond
	lastRetry  = time.Minute
	// lookTime is how long one look may take.
	lookTime = 30 * time.Second
)

// Loop looks at volumes, which informers add to its queue.
type Loop struct {
	informers.SharedInformerFactory
	workqueue.TypedRateLimitingInterface[string]
}

// NewLoop returns one without informers.
func NewLoop(client kubernetes.Interface) Loop {
	return Loop{
		informers.NewSharedInformerFactory(client, 0),
		workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry)),
	}
}

// On calls a function with each object that is made, changed or deleted, and with what it was before it was changed.
func (l Loop) On(informer cache.SharedIndexInformer, changed func(before, now any)) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(now any) { changed(nil, now) }, UpdateFunc: changed,
		DeleteFunc: func(last any) {
			if gone, ok := last.(cache.DeletedFinalStateUnknown); ok {
				last = gone.Obj
			}
			changed(nil, last)
		},
	})
	return err
}

// Run looks at volumes until the context ends, at some of them side by side. After an error, it looks again.
func (l Loop) Run(ctx context.Context, workers int, look func(ctx context.Context, volume string) error) {
	l.Start(ctx.Done())
	defer l.Shutdown()
	l.WaitForCacheSync(ctx.Done())
	defer context.AfterFunc(ctx, l.ShutDown)()
	all := sync.WaitGroup{}
	for range workers {
		all.Go(func() {
			for l.next(ctx, look) {
			}
		})
	}
	all.Wait()
}

func (l Loop) next(ctx context.Context, look func(ctx context.Context, volume string) error) bool {
	volume, isEnded := l.Get()
	if isEnded {
		return false
	}
	defer l.Done(volume)
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	err := look(ctx, volume)
	if err == nil {
		l.Forget(volume)
		return true
	}
	if !apierrors.IsConflict(err) {
		klog.FromContext(ctx).Info("Volume is not as it should be, will look again", "volume", volume, "reason", err)
	}
	l.AddRateLimited(volume)
	return true
}
