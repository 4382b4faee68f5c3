// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
)

// A volume is looked at again after the one, then twice that, up to the other.
const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = time.Minute
)

// Controller does what [Names.Next] says for all volumes of a driver. What it watches says where to look; what it does
// follows from what the API server says then. Two at once do no harm.
type Controller struct {
	API
	factory informers.SharedInformerFactory
	volumes corelisters.PersistentVolumeLister
	nodes   corelisters.NodeLister
	// queue has the names of PersistentVolumes.
	queue workqueue.TypedRateLimitingInterface[string]
}

// NewController returns the controller of a driver.
func NewController(api API) *Controller {
	factory := informers.NewSharedInformerFactory(api.Client, 0)
	core := factory.Core().V1()
	return &Controller{
		API: api, factory: factory, volumes: core.PersistentVolumes().Lister(), nodes: core.Nodes().Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry)),
	}
}

// Run runs until the context ends. What is there at its start counts as changed: nodes may have gone while nobody watched.
func (c *Controller) Run(ctx context.Context) error {
	core := c.factory.Core().V1()
	for informer, changed := range map[cache.SharedIndexInformer]func(before, now any){
		core.PersistentVolumes().Informer(): func(_, now any) { c.queue.Add(now.(*corev1.PersistentVolume).Name) },
		core.PersistentVolumeClaims().Informer(): func(before, now any) {
			claim := now.(*corev1.PersistentVolumeClaim)
			if old, ok := before.(*corev1.PersistentVolumeClaim); !ok || old.Annotations[storagehelpers.AnnSelectedNode] != claim.Annotations[storagehelpers.AnnSelectedNode] {
				c.queue.Add(claim.Spec.VolumeName)
			}
		},
		core.Nodes().Informer(): func(before, now any) {
			node := now.(*corev1.Node)
			if old, ok := before.(*corev1.Node); !ok || nodeOf(old) != nodeOf(node) {
				c.changedNode(node.Name)
			}
		},
	} {
		if err := OnChange(informer, changed); err != nil {
			return err
		}
	}
	c.factory.Start(ctx.Done())
	defer c.factory.Shutdown()
	c.factory.WaitForCacheSync(ctx.Done())
	defer context.AfterFunc(ctx, c.queue.ShutDown)()
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		for c.placeNext(ctx) {
		}
	}, time.Second)
	return nil
}

// OnChange calls a function with each object that is made, changed or deleted, and with what it was before it was changed.
func OnChange(informer cache.SharedIndexInformer, changed func(before, now any)) error {
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

// changedNode looks at the volumes that have to do with a node.
func (c *Controller) changedNode(name string) {
	volumes, _ := c.volumes.List(labels.Everything()) // A cache does not fail.
	for _, pv := range volumes {
		if !c.IsOurs(pv) {
			continue
		}
		v := c.VolumeOf(pv)
		if slices.Contains(append(v.Owners(), v.InUse.Node, v.Begun.Node, v.Shown.Node), name) {
			c.queue.Add(pv.Name)
		}
	}
}

// placeNext waits for a volume to look at, and returns false at the end.
func (c *Controller) placeNext(ctx context.Context) bool {
	name, ended := c.queue.Get()
	if ended {
		return false
	}
	defer c.queue.Done(name)
	isOpen, err := c.place(ctx, name)
	switch {
	case err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
		klog.FromContext(ctx).Error(err, "Placing failed, will try again", "PV", name)
		c.queue.AddRateLimited(name)
	case err == nil && isOpen: // It may depend on pods, which nobody watches.
		c.queue.AddRateLimited(name)
	default: // After a conflict, its event is in the queue, or will be.
		c.queue.Forget(name)
	}
	return true
}

// place changes a volume until there is nothing to change. isOpen tells that it is released, and that one of its homes can
// be used, or a copy is complete: then a pod that comes to run can change what is to be done.
func (c *Controller) place(ctx context.Context, name string) (isOpen bool, err error) {
	pv, err := c.volumes.Get(name)
	if err != nil || !c.IsOurs(pv) || c.isSettled(c.VolumeOf(pv)) {
		return false, err
	}
	v, err := c.Volume(ctx, name, pv.Spec.CSI.VolumeHandle)
	for err == nil && v.PV.DeletionTimestamp == nil {
		var cluster Cluster
		if cluster, err = c.Cluster(ctx, v); err != nil {
			break
		}
		_, isUsable := cluster.present(v.Homes)
		isOpen = v.Affinity == nil && !cluster.IsClaimGone && (isUsable || v.Copied.Node != "")
		if isOpen || v.IsUnconfirmed && !cluster.IsClaimGone {
			if err = c.addPods(ctx, v, &cluster); err != nil {
				break
			}
		}
		change := c.Next(v, cluster)
		if change == nil {
			break
		}
		v, err = c.Patch(ctx, v, change)
	}
	return isOpen, err
}

// isSettled tells whether a volume is on a usable node by the caches, so that the API server need not be asked.
func (c *Controller) isSettled(v Volume) bool {
	nodes, _ := nodesOf(append([]string{v.InUse.Node}, v.Affinity...), c.nodes.Get)
	isUsable := slices.ContainsFunc(v.Affinity, func(name string) bool { return nodes[name].IsUsable })
	return isUsable && !v.IsUnconfirmed && v.Begun.Node == "" && !nodes[v.InUse.Node].IsOff
}
