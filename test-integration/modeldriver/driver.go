// SPDX-License-Identifier: Apache-2.0

package modeldriver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
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

// Driver is a driver. Its configuration is not to be changed while it runs.
type Driver struct {
	Config
	*storage

	client      kubernetes.Interface
	claims      corelisters.PersistentVolumeClaimLister
	nodes       corelisters.NodeLister
	pods        corelisters.PodLister
	attachments storagelisters.VolumeAttachmentLister

	unprovisioned workqueue.TypedRateLimitingInterface[cache.ObjectName]
	unpublished   workqueue.TypedRateLimitingInterface[object]
	// published are the objects as they were written, and older as they were before
	// that. Only one goroutine uses them at a time.
	published, older map[object]*storagev1.CSIStorageCapacity
	// limiter is for writes of the objects. It may be nil.
	limiter    *rate.Limiter
	confirming atomic.Bool

	// rebuilding makes it do one thing at a time for volumes that exist.
	rebuilding   sync.Mutex
	paused, slow bool

	calls, provisioned atomic.Int64
	running            sync.WaitGroup
}

// New returns a driver that has its disks, and is not asked for anything yet.
func New(config Config) (*Driver, error) {
	if config.Report == nil {
		config.Report = Everything
	}
	if config.Lag > 0 && config.Confirming {
		return nil, fmt.Errorf("driver %s: numbers of the past cannot be confirmed", config.Name)
	}
	for _, segment := range config.Segments {
		if len(segment.Pools) == 0 {
			return nil, fmt.Errorf("driver %s: segment %v has no pools; a full one has a pool of 0 bytes", config.Name, segment.Labels)
		}
	}
	d := &Driver{Config: config}
	d.storage = newStorage(&d.Config)
	return d, nil
}

// Start returns a new driver that provisions and publishes until ctx is done. What it created stays.
func Start(ctx context.Context, client kubernetes.Interface, config Config) (*Driver, error) {
	d, err := New(config)
	if err != nil {
		return nil, err
	}
	d.client = client
	d.unprovisioned, d.unpublished = newQueue[cache.ObjectName](config.Name+"-claims"), newQueue[object](config.Name+"-capacities")
	d.published, d.older = map[object]*storagev1.CSIStorageCapacity{}, map[object]*storagev1.CSIStorageCapacity{}
	d.confirming.Store(config.Confirming)
	if config.WritesPerSecond > 0 {
		d.limiter = rate.NewLimiter(rate.Limit(config.WritesPerSecond), writeBurst)
	}
	err = d.Install(ctx, client)
	if err == nil && !config.Untracked {
		err = d.publishAll(ctx)
	}
	if err == nil {
		err = d.run(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("driver %s: %w", config.Name, err)
	}
	return d, nil
}

func newQueue[T comparable](name string) workqueue.TypedRateLimitingInterface[T] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[T](5*time.Millisecond, time.Second)
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[T]{Name: name})
}

// Install creates the CSIDriver and the storage classes, unless they are there.
func (d *Driver) Install(ctx context.Context, client kubernetes.Interface) error {
	driver := &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: d.Name},
		Spec:       storagev1.CSIDriverSpec{AttachRequired: new(d.AttachRequired), StorageCapacity: new(!d.Untracked && !d.Unchecked)},
	}
	if d.Rebuilding {
		driver.Spec.VolumeRebuilding = new(true)
	}
	if _, err := client.StorageV1().CSIDrivers().Create(ctx, driver, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create CSIDriver: %w", err)
	}
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	if d.Immediate {
		mode = storagev1.VolumeBindingImmediate
	}
	for _, name := range d.Classes {
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: d.Name, VolumeBindingMode: &mode}
		if _, err := client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create StorageClass: %w", err)
		}
	}
	return nil
}

// Wait returns when the driver has ended.
func (d *Driver) Wait() { d.running.Wait() }

// Calls returns how often the driver was asked for its capacity.
func (d *Driver) Calls() int { return int(d.calls.Load()) }

// Provisioned returns the number of PersistentVolumes that were created by a driver that was started.
func (d *Driver) Provisioned() int { return int(d.provisioned.Load()) }

// Failed returns how many volumes were asked for where there was no room: in these segments, or in all.
func (d *Driver) Failed(segments ...string) (failed int) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for _, disk := range slices.Compact(slices.Clone(d.disks)) {
		if len(segments) == 0 || slices.Contains(segments, disk.node) {
			failed += disk.refused
		}
	}
	return failed
}

// Volumes returns the number of volumes in each segment.
func (d *Driver) Volumes() []int {
	counts := make([]int, len(d.disks))
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for _, places := range d.places {
		for _, place := range places {
			counts[place.segment]++
		}
	}
	return counts
}

// segment returns the first segment of a name, or -1.
func (d *Driver) segment(name string) int {
	return slices.IndexFunc(d.Segments, func(segment Segment) bool { return segment.Name() == name })
}

// segmentOf returns the first segment with storage of the class for nodes with such labels, or -1.
func (d *Driver) segmentOf(class string, nodeLabels map[string]string) int {
	for i := range d.Segments {
		if d.Segments[i].serves(class, nodeLabels) {
			return i
		}
	}
	return -1
}

// Free returns the bytes that are really free in the pools of a segment.
func (d *Driver) Free(segment string) []int64 {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return slices.Clone(d.disks[d.segment(segment)].free)
}

// Has returns whether the volume with a handle is complete in a segment.
func (d *Driver) Has(handle, segment string) bool { return d.has(d.segment(segment), handle) }

// Resize adds bytes to a pool of a segment, or takes them if less than zero.
func (d *Driver) Resize(segment string, pool int, bytes int64) {
	d.resize(d.segment(segment), pool, bytes)
	d.changed(d.segment(segment))
}

// SetPools sets what is free in a segment, and forgets what was refused there.
func (d *Driver) SetPools(segment string, free ...int64) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	disk := d.disks[d.segment(segment)]
	disk.free, disk.earlier, disk.refused = slices.Clone(free), nil, 0
}

// run starts what a driver does by itself.
func (d *Driver) run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(d.client, 0)
	core := factory.Core().V1()
	d.claims, d.nodes = core.PersistentVolumeClaims().Lister(), core.Nodes().Lister()
	_, err := core.PersistentVolumeClaims().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { d.enqueue(obj) },
		UpdateFunc: func(_, obj any) { d.enqueue(obj) },
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && d.isOurs(claim) {
				d.running.Go(func() { d.unprovision(ctx, claim.UID) })
			}
		},
	})
	if err == nil && d.Confirming {
		_, err = core.PersistentVolumes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: d.volumeWritten, UpdateFunc: func(_, obj any) { d.volumeWritten(obj) },
		})
	}
	if err != nil {
		return err
	}
	if d.Rebuilding {
		d.pods, d.attachments = core.Pods().Lister(), factory.Storage().V1().VolumeAttachments().Lister()
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)

	for range workers {
		d.running.Go(func() { drain(ctx, d.unprovisioned, d.provision) })
	}
	d.running.Go(func() { drain(ctx, d.unpublished, d.publish) })
	if d.PollInterval > 0 {
		d.running.Go(func() { wait.UntilWithContext(ctx, func(context.Context) { d.Publish() }, d.PollInterval) })
	}
	if d.Rebuilding {
		d.running.Go(func() { wait.UntilWithContext(ctx, d.lookAtVolumes, rebuildPeriod) })
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
	return slices.Contains(d.Classes, storagehelpers.GetPersistentVolumeClaimClass(claim))
}

func (d *Driver) enqueue(obj any) {
	if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && d.isOurs(claim) && claim.Annotations[storagehelpers.AnnSelectedNode] != "" {
		d.unprovisioned.Add(cache.MetaObjectToName(claim))
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
