package modeldriver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// rebuilding is what a driver needs that rebuilds volumes.
type rebuilding struct {
	pods        corelisters.PodLister
	attachments storagelisters.VolumeAttachmentLister

	keepAffinity atomic.Bool
	mutex        sync.Mutex
	// refused has the nodes, by claims, on which there was no room. Each counts
	// once, however often it is tried again.
	refused map[types.UID]string
}

// KeepAffinity makes the driver neglect that it has to unset the node affinity of
// volumes, or make up for it.
func (d *Driver) KeepAffinity(keep bool) {
	d.rebuilding.keepAffinity.Store(keep)
	d.placeAll()
}

// watchForRebuilding looks again at where volumes are after each change that may
// matter.
func (d *Driver) watchForRebuilding(factory informers.SharedInformerFactory) error {
	core, storage := factory.Core().V1(), factory.Storage().V1()
	d.rebuilding.pods, d.rebuilding.attachments = core.Pods().Lister(), storage.VolumeAttachments().Lister()
	for informer, matters := range map[cache.SharedIndexInformer]func(before, after any) bool{
		core.Nodes().Informer(): func(before, after any) bool {
			// Heartbeats do not.
			return !apiequality.Semantic.DeepEqual(before.(*corev1.Node).Spec, after.(*corev1.Node).Spec)
		},
		core.Pods().Informer(): func(before, after any) bool {
			return before.(*corev1.Pod).Spec.NodeName != after.(*corev1.Pod).Spec.NodeName
		},
		core.PersistentVolumeClaims().Informer(): func(any, any) bool { return true },
		storage.VolumeAttachments().Informer():   func(any, any) bool { return false },
	} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { d.placeAll() },
			UpdateFunc: func(before, after any) {
				if matters(before, after) {
					d.placeAll()
				}
			},
			DeleteFunc: func(any) { d.placeAll() },
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *Driver) placeAll() {
	claims, err := d.claims.List(labels.Everything())
	if err != nil {
		panic(err) // A cache does not fail.
	}
	for _, claim := range claims {
		if d.isOurs(claim) && claim.Spec.VolumeName != "" {
			d.misplaced.Add(cache.MetaObjectToName(claim).String())
		}
	}
}

// place rebuilds the volume of a claim if that is due, and makes the node affinity
// fit to where the volume is and whether it can stay there. It starts from what is,
// not from what has happened: a node may be usable again before the driver has
// seen that it was not.
func (d *Driver) place(ctx context.Context, key string) error {
	claim, err := d.claim(key)
	if claim == nil || err != nil {
		return err
	}
	current := d.segmentWith(claim.UID)
	if current < 0 || claim.DeletionTimestamp != nil {
		return nil
	}
	if current, err = d.rebuild(ctx, claim, current); err != nil {
		return err
	}
	reachable, err := d.isReachable(current)
	switch {
	case err != nil:
		return err
	case reachable:
		return d.setAffinity(ctx, claim, affinity(d.config.Segments[current].Labels))
	case !d.rebuilding.keepAffinity.Load():
		return d.setAffinity(ctx, claim, nil)
	}
	return nil
}

// segmentWith returns the segment in which the volume of a claim is, or -1.
func (d *Driver) segmentWith(claim types.UID) int {
	return slices.IndexFunc(d.storage, func(s *storage) bool { return s.has(claim) })
}

// isReachable checks whether any node that has access to a segment can be used.
func (d *Driver) isReachable(segment int) (bool, error) {
	nodes, err := d.nodes.List(labels.SelectorFromSet(d.config.Segments[segment].Labels))
	return slices.ContainsFunc(nodes, isUsable), err
}

func isUsable(node *corev1.Node) bool {
	return !node.Spec.Unschedulable && !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == corev1.TaintNodeOutOfService
	})
}

// rebuild moves a volume to the node where it is needed if that has no access to the
// segment, and returns the segment where the volume is then. The new space is taken
// first: if there is none, the volume stays where it is.
func (d *Driver) rebuild(ctx context.Context, claim *corev1.PersistentVolumeClaim, current int) (int, error) {
	nodeName, err := d.neededOn(claim)
	if err != nil {
		return current, err
	}
	node, err := d.nodes.Get(nodeName)
	if apierrors.IsNotFound(err) || err == nil && !isUsable(node) {
		return current, nil
	}
	if err != nil {
		return current, err
	}
	next := d.segmentOf(node)
	if next == current {
		return current, nil
	}
	if next < 0 || !d.storage[next].allocate(claim.UID, d.sizeOf(claim)) {
		d.refuse(claim.UID, node.Name)
		return current, fmt.Errorf("no room for the volume of claim %s on %s", klog.KObj(claim), node.Name)
	}
	d.storage[current].release(claim.UID)
	d.changed(current)
	d.changed(next)
	klog.FromContext(ctx).Info("Rebuilt volume", "claim", klog.KObj(claim), "node", node.Name)
	return next, nil
}

// neededOn returns the node that asks for the volume of a claim, or an empty string.
func (d *Driver) neededOn(claim *corev1.PersistentVolumeClaim) (string, error) {
	switch {
	case d.config.Eager:
		return claim.Annotations[selectedNode], nil
	case d.config.AttachRequired:
		attachments, err := d.rebuilding.attachments.List(labels.Everything())
		for _, attachment := range attachments {
			if name := attachment.Spec.Source.PersistentVolumeName; name != nil && *name == claim.Spec.VolumeName && attachment.DeletionTimestamp == nil {
				return attachment.Spec.NodeName, nil
			}
		}
		return "", err
	default:
		// Where kubelet asks for it.
		pods, err := d.rebuilding.pods.Pods(claim.Namespace).List(labels.Everything())
		for _, pod := range pods {
			if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && uses(pod, claim) {
				return pod.Spec.NodeName, nil
			}
		}
		return "", err
	}
}

func uses(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
		source := volume.PersistentVolumeClaim
		return source != nil && source.ClaimName == claim.Name ||
			volume.Ephemeral != nil && pod.Name+"-"+volume.Name == claim.Name
	})
}

func (d *Driver) refuse(claim types.UID, node string) {
	d.rebuilding.mutex.Lock()
	defer d.rebuilding.mutex.Unlock()
	if d.rebuilding.refused[claim] != node {
		d.rebuilding.refused[claim] = node
		d.failed.Add(1)
	}
}

// setAffinity writes the node affinity of a volume, for which the API server needs
// the feature gate MutablePVNodeAffinity.
func (d *Driver) setAffinity(ctx context.Context, claim *corev1.PersistentVolumeClaim, want *corev1.VolumeNodeAffinity) error {
	volumes := d.client.CoreV1().PersistentVolumes()
	volume, err := volumes.Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get volume: %w", err)
	}
	if apiequality.Semantic.DeepEqual(volume.Spec.NodeAffinity, want) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": volume.ResourceVersion},
		"spec":     map[string]any{"nodeAffinity": want},
	})
	if err != nil {
		return err
	}
	if _, err := volumes.Patch(ctx, volume.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("change node affinity: %w", err)
	}
	return nil
}
