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

	keepAffinity, paused atomic.Bool
	mutex                sync.Mutex
	// sentTo has the selected nodes, by claims, when the node affinity was unset.
	sentTo map[types.UID]string
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

// Pause makes the driver do nothing for volumes that exist, or make up for it.
func (d *Driver) Pause(paused bool) {
	d.rebuilding.paused.Store(paused)
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
	if claim == nil || err != nil || d.rebuilding.paused.Load() {
		return err
	}
	copies := d.segmentsWith(claim.UID)
	if len(copies) == 0 || claim.DeletionTimestamp != nil {
		return nil
	}
	requested, copies, err := d.rebuild(ctx, claim, copies)
	if err != nil {
		return err
	}
	var usable []map[string]string
	for _, segment := range copies {
		reachable, err := d.isReachable(segment)
		if err != nil {
			return err
		}
		if reachable {
			usable = append(usable, d.config.Segments[segment].Labels)
		}
	}
	switch {
	case len(usable) > 0 && requested:
		return d.setAffinity(ctx, claim, affinity(usable...))
	case len(usable) > 0:
		return d.putBack(ctx, claim, affinity(usable...))
	case !d.rebuilding.keepAffinity.Load():
		return d.unset(ctx, claim)
	}
	return nil
}

// unset releases a volume, and remembers where its claim was sent last.
func (d *Driver) unset(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	d.rebuilding.mutex.Lock()
	if _, ok := d.rebuilding.sentTo[claim.UID]; !ok {
		d.rebuilding.sentTo[claim.UID] = claim.Annotations[selectedNode]
	}
	d.rebuilding.mutex.Unlock()
	return d.setAffinity(ctx, claim, nil)
}

// putBack says again where a volume is that has not moved, unless its claim was sent
// elsewhere meanwhile. The scheduler writes the claim first and reads the volume then,
// so this is the other way round: one of both notices.
func (d *Driver) putBack(ctx context.Context, claim *corev1.PersistentVolumeClaim, want *corev1.VolumeNodeAffinity) error {
	d.rebuilding.mutex.Lock()
	sentTo, isUnset := d.rebuilding.sentTo[claim.UID]
	d.rebuilding.mutex.Unlock()
	if isUnset && claim.Annotations[selectedNode] != sentTo {
		return nil
	}
	if err := d.setAffinity(ctx, claim, want); err != nil || !isUnset {
		return err
	}
	current, err := d.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read claim again: %w", err)
	}
	if current.Annotations[selectedNode] != sentTo {
		return d.setAffinity(ctx, claim, nil)
	}
	d.forget(claim.UID)
	return nil
}

func (d *Driver) forget(claim types.UID) {
	d.rebuilding.mutex.Lock()
	defer d.rebuilding.mutex.Unlock()
	delete(d.rebuilding.sentTo, claim)
}

// segmentWith returns the first segment in which the volume of a claim is, or -1.
func (d *Driver) segmentWith(claim types.UID) int {
	return slices.IndexFunc(d.storage, func(s *storage) bool { return s.has(claim) })
}

func (d *Driver) segmentsWith(claim types.UID) []int {
	var segments []int
	for i, s := range d.storage {
		if s.has(claim) {
			segments = append(segments, i)
		}
	}
	return segments
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

// rebuild moves a volume to the node where it is needed if that has no access to a
// copy, and returns the segments where the volume is then, and whether a node asks for
// it. The new space is taken first: if there is none, the volume stays where it is.
func (d *Driver) rebuild(ctx context.Context, claim *corev1.PersistentVolumeClaim, copies []int) (bool, []int, error) {
	nodeName, err := d.neededOn(claim)
	if err != nil {
		return false, copies, err
	}
	node, err := d.nodes.Get(nodeName)
	if apierrors.IsNotFound(err) || err == nil && !isUsable(node) {
		return false, copies, nil
	}
	if err != nil {
		return false, copies, err
	}
	next := d.segmentOf(node)
	if slices.Contains(copies, next) {
		d.forget(claim.UID)
		return true, copies, nil
	}
	if next < 0 || !d.storage[next].allocate(claim.UID, d.sizeOf(claim)) {
		d.refuse(claim.UID, node.Name)
		return false, copies, fmt.Errorf("no room for the volume of claim %s on %s", klog.KObj(claim), node.Name)
	}
	for _, segment := range copies {
		d.storage[segment].release(claim.UID)
	}
	if !d.config.SilentRebuild {
		for _, o := range d.objectsOf(next) {
			d.confirmer.remember(o, claim.UID)
		}
		for _, segment := range append(copies, next) {
			d.changed(segment)
		}
	}
	d.forget(claim.UID)
	klog.FromContext(ctx).Info("Rebuilt volume", "claim", klog.KObj(claim), "node", node.Name)
	return true, []int{next}, nil
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
