package modeldriver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"

	"golang.org/x/time/rate"
)

const (
	// workers is the number of requests that run in parallel.
	workers = 8
	// writeBurst is the number of writes of capacity objects that do not wait for
	// each other. external-provisioner has the same.
	writeBurst = 5
)

// Driver is a driver that runs.
type Driver struct {
	config  Config
	client  kubernetes.Interface
	claims  corelisters.PersistentVolumeClaimLister
	nodes   corelisters.NodeLister
	classes map[string]bool
	storage []*storage

	unprovisioned workqueue.TypedRateLimitingInterface[string]
	unpublished   workqueue.TypedRateLimitingInterface[object]
	// published are the objects as they were written, and older as they were before
	// that. Only one goroutine uses them at a time.
	published, older map[object]*storagev1.CSIStorageCapacity
	// limiter is for writes of the objects. It may be nil.
	limiter    *rate.Limiter
	confirming atomic.Bool

	copying copying

	provisioned, failed atomic.Int64
	running             sync.WaitGroup
}

// Start creates the CSIDriver and the storage classes unless they are there, and the capacity objects. It
// returns a driver that provisions until ctx is done. What it created stays.
func Start(ctx context.Context, client kubernetes.Interface, config Config) (*Driver, error) {
	if config.Apart {
		config.Segments = apart(config.Segments, config.Classes)
	}
	d := &Driver{
		config:        config,
		client:        client,
		classes:       map[string]bool{},
		unprovisioned: newQueue[string](config.Name + "-claims"),
		unpublished:   newQueue[object](config.Name + "-capacities"),
		published:     map[object]*storagev1.CSIStorageCapacity{},
		older:         map[object]*storagev1.CSIStorageCapacity{},
		copying:       copying{refused: map[types.UID]string{}},
	}
	d.confirming.Store(config.Confirming)
	if config.WritesPerSecond > 0 {
		d.limiter = rate.NewLimiter(rate.Limit(config.WritesPerSecond), writeBurst)
	}
	for _, segment := range config.Segments {
		if len(segment.Pools) == 0 {
			return nil, fmt.Errorf("driver %s: segment %v has no pools; a full one has a pool of 0 bytes", config.Name, segment.Labels)
		}
		s := newStorage(segment.Pools, config.Thin, config.WorstFit)
		s.record(config.History, segment.name())
		d.storage = append(d.storage, s)
	}
	if err := d.install(ctx); err != nil {
		return nil, fmt.Errorf("driver %s: %w", config.Name, err)
	}
	if err := d.run(ctx); err != nil {
		return nil, fmt.Errorf("driver %s: %w", config.Name, err)
	}
	return d, nil
}

func newQueue[T comparable](name string) workqueue.TypedRateLimitingInterface[T] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[T](5*time.Millisecond, time.Second)
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[T]{Name: name})
}

// Wait returns when the driver has ended.
func (d *Driver) Wait() { d.running.Wait() }

// Provisioned returns the number of volumes that were created.
func (d *Driver) Provisioned() int { return int(d.provisioned.Load()) }

// Failed returns the number of volumes that were asked for where there was no
// room.
func (d *Driver) Failed() int { return int(d.failed.Load()) }

// Volumes returns the number of volumes in each segment.
func (d *Driver) Volumes() []int {
	counts := make([]int, 0, len(d.storage))
	for _, s := range d.storage {
		counts = append(counts, s.count())
	}
	return counts
}

// Free returns the bytes that are really free in the pools of a segment.
func (d *Driver) Free(segment int) []int64 { return d.storage[segment].pools() }

// Has returns whether the volume with a handle is on a node.
func (d *Driver) Has(handle, node string) bool {
	for i, segment := range d.config.Segments {
		if name, ok := segment.Labels[corev1.LabelHostname]; (!ok || name == node) && d.storage[i].has(types.UID(handle)) {
			return true
		}
	}
	return false
}

// Resize adds bytes to a pool of a segment, or takes them if less than zero.
func (d *Driver) Resize(segment, pool int, bytes int64) {
	d.storage[segment].resize(pool, bytes)
	d.changed(segment)
}

// Publish publishes what is free now, whatever the delay.
func (d *Driver) Publish() {
	for segment := range d.storage {
		for _, o := range d.objectsOf(segment) {
			d.unpublished.Add(o)
		}
	}
}

// Confirm turns the confirmation of published numbers on or off, as if another
// version of external-provisioner had taken over.
func (d *Driver) Confirm(on bool) { d.confirming.Store(on) }

// install creates the objects of the driver.
func (d *Driver) install(ctx context.Context) error {
	driver := &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: d.config.Name},
		Spec:       storagev1.CSIDriverSpec{AttachRequired: new(d.config.AttachRequired), StorageCapacity: new(!d.config.Untracked && !d.config.Unchecked)},
	}
	if d.config.Rebuilding {
		driver.Spec.VolumeRebuilding = new(true)
	}
	if _, err := d.client.StorageV1().CSIDrivers().Create(ctx, driver, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create CSIDriver: %w", err)
	}
	for _, name := range d.config.Classes {
		class := &storagev1.StorageClass{
			ObjectMeta:        metav1.ObjectMeta{Name: name},
			Provisioner:       d.config.Name,
			VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
		}
		if _, err := d.client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create StorageClass: %w", err)
		}
		d.classes[name] = true
	}
	if d.config.Untracked {
		return nil
	}
	return d.publishAll(ctx)
}

// objectsOf returns the capacity objects of a segment.
func (d *Driver) objectsOf(segment int) []object {
	if class := d.config.Segments[segment].class; class != "" {
		return []object{{class: class, segment: segment}}
	}
	objects := make([]object, 0, len(d.config.Classes))
	for _, class := range d.config.Classes {
		objects = append(objects, object{class: class, segment: segment})
	}
	return objects
}

// changed has the objects of the segment published.
func (d *Driver) changed(segment int) {
	if d.config.Untracked {
		return
	}
	for _, o := range d.objectsOf(segment) {
		d.unpublished.AddAfter(o, d.config.RefreshDelay)
	}
}

func (d *Driver) run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(d.client, 0)
	informer := factory.Core().V1().PersistentVolumeClaims()
	d.claims = informer.Lister()
	d.nodes = factory.Core().V1().Nodes().Lister()
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { d.enqueue(obj) },
		UpdateFunc: func(_, obj any) { d.enqueue(obj) },
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && d.isOurs(claim) {
				d.running.Go(func() { d.deleteVolume(ctx, claim.UID) })
			}
		},
	})
	if err != nil {
		return err
	}
	if d.config.Confirming {
		_, err := factory.Core().V1().PersistentVolumes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: d.volumeWritten, UpdateFunc: func(_, obj any) { d.volumeWritten(obj) },
		})
		if err != nil {
			return err
		}
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)

	for range workers {
		d.running.Go(func() { drain(ctx, d.unprovisioned, d.provision) })
	}
	d.running.Go(func() { drain(ctx, d.unpublished, d.publish) })
	if d.config.PollInterval > 0 {
		d.running.Go(func() { wait.UntilWithContext(ctx, func(context.Context) { d.Publish() }, d.config.PollInterval) })
	}
	d.running.Go(func() {
		<-ctx.Done()
		d.unprovisioned.ShutDown()
		d.unpublished.ShutDown()
		factory.Shutdown()
	})
	return nil
}

func (d *Driver) isOurs(claim *corev1.PersistentVolumeClaim) bool {
	return d.classes[storagehelpers.GetPersistentVolumeClaimClass(claim)]
}

func (d *Driver) enqueue(obj any) {
	if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && d.isOurs(claim) && claim.Annotations[selectedNode] != "" {
		d.unprovisioned.Add(cache.MetaObjectToName(claim).String())
	}
}

// drain handles items until the queue is shut down. Errors are tried again.
func drain[T comparable](ctx context.Context, queue workqueue.TypedRateLimitingInterface[T], handle func(context.Context, T) error) {
	for {
		item, shutdown := queue.Get()
		if shutdown {
			return
		}
		err := handle(ctx, item)
		switch {
		case err == nil:
			queue.Forget(item)
		case !errors.Is(err, context.Canceled):
			klog.FromContext(ctx).Info("Trying again", "item", item, "reason", err)
			queue.AddRateLimited(item)
		}
		queue.Done(item)
	}
}
