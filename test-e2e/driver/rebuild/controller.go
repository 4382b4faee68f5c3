package rebuild

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/prometheus/client_golang/prometheus"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
	"k8s.io/utils/keymutex"
)

// byHandle indexes the PersistentVolumes of the driver by volume ID.
const byHandle = "handle"

// Placements counts changes of node affinities. Reasons: released (no copy can be used),
// returned (one can again, or its node has asked for the volume), rebuilt (on a node that
// had no copy), taken back (the claim was sent elsewhere meanwhile).
var Placements = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "reference_driver_placements_total",
	Help: "Changes of the node affinity of PersistentVolumes, by reason.",
}, []string{"reason"})

// Controller is the controller half. It also serves the two calls with which nodes ask.
type Controller struct {
	csi.UnimplementedControllerServer

	driver, key string
	client      kubernetes.Interface
	factory     informers.SharedInformerFactory
	nodes       corelisters.NodeLister
	claims      corelisters.PersistentVolumeClaimLister
	volumes     corelisters.PersistentVolumeLister
	handles     cache.Indexer
	queue       workqueue.TypedRateLimitingInterface[string]
	// calls has one change of a volume at a time.
	calls keymutex.KeyMutex
}

// New returns the controller half of a driver, whose topology has a key.
func New(client kubernetes.Interface, driver, key string) (*Controller, error) {
	factory := informers.NewSharedInformerFactory(client, 0)
	core := factory.Core().V1()
	c := &Controller{
		driver: driver, key: key, client: client, factory: factory,
		nodes: core.Nodes().Lister(), claims: core.PersistentVolumeClaims().Lister(), volumes: core.PersistentVolumes().Lister(),
		handles: core.PersistentVolumes().Informer().GetIndexer(),
		queue:   workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](100*time.Millisecond, 10*time.Second)),
		calls:   keymutex.NewHashed(1024),
	}
	err := core.PersistentVolumes().Informer().AddIndexers(cache.Indexers{byHandle: func(o any) ([]string, error) {
		if pv, ok := o.(*corev1.PersistentVolume); ok && c.isOurs(pv) {
			return []string{pv.Spec.CSI.VolumeHandle}, nil
		}
		return nil, nil
	}})
	return c, errors.Join(err,
		c.watch(core.Nodes().Informer(), func(before, after any) bool {
			// Heartbeats do not matter.
			return !apiequality.Semantic.DeepEqual(before.(*corev1.Node).Spec, after.(*corev1.Node).Spec)
		}, func(any) { c.enqueueAll() }),
		c.watch(core.PersistentVolumes().Informer(), nil, func(o any) {
			if pv, ok := o.(*corev1.PersistentVolume); ok && c.isOurs(pv) {
				c.queue.Add(pv.Name)
			}
		}),
		c.watch(core.PersistentVolumeClaims().Informer(), func(before, after any) bool {
			const key = storagehelpers.AnnSelectedNode
			return before.(*corev1.PersistentVolumeClaim).Annotations[key] != after.(*corev1.PersistentVolumeClaim).Annotations[key]
		}, func(o any) {
			if claim, ok := o.(*corev1.PersistentVolumeClaim); ok && claim.Spec.VolumeName != "" {
				c.queue.Add(claim.Spec.VolumeName)
			}
		}))
}

func (c *Controller) watch(informer cache.SharedIndexInformer, matters func(before, after any) bool, enqueue func(any)) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue,
		UpdateFunc: func(before, after any) {
			if matters == nil || matters(before, after) {
				enqueue(after)
			}
		},
		DeleteFunc: enqueue,
	})
	return err
}

func (c *Controller) enqueueAll() {
	volumes, err := c.volumes.List(labels.Everything())
	if err != nil {
		panic(err) // A cache does not fail.
	}
	for _, pv := range volumes {
		if c.isOurs(pv) {
			c.queue.Add(pv.Name)
		}
	}
}

// Start waits until the caches are filled, and then keeps the node affinities right
// until the context ends. wait returns when all of it has ended.
func (c *Controller) Start(ctx context.Context) (wait func(), err error) {
	c.factory.Start(ctx.Done())
	for informer, ok := range c.factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return nil, fmt.Errorf("cache of %v was not filled: %w", informer, context.Cause(ctx))
		}
	}
	c.enqueueAll() // nodes may have gone while nobody watched
	var running sync.WaitGroup
	running.Go(func() { c.work(ctx) })
	context.AfterFunc(ctx, c.queue.ShutDown)
	return func() { running.Wait(); c.factory.Shutdown() }, nil
}

func (c *Controller) work(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		for {
			name, shutdown := c.queue.Get()
			if shutdown {
				return
			}
			if err := c.place(ctx, name); err != nil {
				klog.FromContext(ctx).Error(err, "Placing failed, will try again", "PV", name)
				c.queue.AddRateLimited(name)
			} else {
				c.queue.Forget(name)
			}
			c.queue.Done(name)
		}
	}, time.Second)
}

func (c *Controller) isOurs(pv *corev1.PersistentVolume) bool {
	return pv.Spec.CSI != nil && pv.Spec.CSI.Driver == c.driver
}
