package rebuilder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/klog/v2"

	"capacityv2.internal/test-integration/modeldriver"
)

// period is the time between two looks at all volumes. A real driver watches.
const period = 50 * time.Millisecond

// Driver rebuilds volumes of a model driver, on whose disks they are.
type Driver struct {
	*modeldriver.Driver
	client      kubernetes.Interface
	name        string
	attaching   bool
	nodes       corelisters.NodeLister
	pods        corelisters.PodLister
	attachments storagelisters.VolumeAttachmentLister

	// mutex makes it do one thing at a time.
	mutex        sync.Mutex
	paused, slow bool
	running      sync.WaitGroup
}

// Start starts a driver that runs until ctx is done.
func Start(ctx context.Context, client kubernetes.Interface, config modeldriver.Config) (*Driver, error) {
	config.Rebuilding = true
	disks, err := modeldriver.Start(ctx, client, config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	core, storage := factory.Core().V1(), factory.Storage().V1()
	d := &Driver{
		Driver: disks, client: client, name: config.Name, attaching: config.AttachRequired,
		nodes: core.Nodes().Lister(), pods: core.Pods().Lister(), attachments: storage.VolumeAttachments().Lister(),
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
	d.running.Go(func() {
		wait.UntilWithContext(ctx, d.look, period)
		factory.Shutdown()
	})
	return d, nil
}

// Wait returns when the driver has ended.
func (d *Driver) Wait() {
	d.running.Wait()
	d.Driver.Wait()
}

// Pause makes the driver do nothing for volumes that exist, as if it was down, or go on.
func (d *Driver) Pause(paused bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.paused = paused
}

// Slow makes copies take until it is turned off.
func (d *Driver) Slow(slow bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.slow = slow
}

// look looks at all volumes.
func (d *Driver) look(ctx context.Context) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.paused {
		return
	}
	// Not from a cache: what is not on the PersistentVolume gets removed.
	volumes, err := d.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		klog.FromContext(ctx).Info("Trying again", "reason", err)
		return
	}
	for i := range volumes.Items {
		pv := &volumes.Items[i]
		if pv.Spec.CSI == nil || pv.Spec.CSI.Driver != d.name || pv.Spec.ClaimRef == nil || pv.DeletionTimestamp != nil {
			continue
		}
		if err := errors.Join(d.place(ctx, pv), d.attach(ctx, pv)); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Info("Trying again", "volume", pv.Name, "reason", err)
		}
	}
}

// isAsking tells whether a node asks for a volume.
func (d *Driver) isAsking(pv *corev1.PersistentVolume, node string) bool {
	if !d.isReachable(node) {
		return false
	}
	if d.attaching {
		return slices.ContainsFunc(d.attachmentsOf(pv), func(a *storagev1.VolumeAttachment) bool { return a.Spec.NodeName == node })
	}
	pods, err := d.pods.Pods(pv.Spec.ClaimRef.Namespace).List(labels.Everything())
	if err != nil {
		panic(err) // A cache does not fail.
	}
	return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		return pod.Spec.NodeName == node && pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
			return volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == pv.Spec.ClaimRef.Name
		})
	})
}

func (d *Driver) attachmentsOf(pv *corev1.PersistentVolume) []*storagev1.VolumeAttachment {
	all, err := d.attachments.List(labels.Everything())
	if err != nil {
		panic(err) // A cache does not fail.
	}
	return slices.DeleteFunc(slices.Clone(all), func(a *storagev1.VolumeAttachment) bool {
		return a.DeletionTimestamp != nil || a.Spec.Source.PersistentVolumeName == nil || *a.Spec.Source.PersistentVolumeName != pv.Name
	})
}

// attach plays the part of external-attacher for nodes that have the volume.
func (d *Driver) attach(ctx context.Context, pv *corev1.PersistentVolume) error {
	for _, a := range d.attachmentsOf(pv) {
		s := stateOf(pv)
		isHome := s.named == nil && s.begun == "" && slices.Contains(d.homesOf(pv, s.copies), a.Spec.NodeName)
		isNamed := s.copies == nil && slices.Contains(s.named, a.Spec.NodeName)
		if a.Status.Attached || !isHome && !isNamed {
			continue
		}
		_, err := d.client.StorageV1().VolumeAttachments().Patch(ctx, a.Name, types.MergePatchType, []byte(`{"status": {"attached": true}}`), metav1.PatchOptions{}, "status")
		if err != nil {
			return fmt.Errorf("attach: %w", err)
		}
	}
	return nil
}
