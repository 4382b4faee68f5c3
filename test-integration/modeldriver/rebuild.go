// SPDX-License-Identifier: Apache-2.0

package modeldriver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
)

// What rebuilds volumes was written from docs/reference/rebuilding-contract.md alone, and keeps
// nothing in memory: what it has to know later is on the PersistentVolume, or on the disks.
//
// There is no kubelet in these tests. A node asks for a volume when there is a
// VolumeAttachment, or, without attachment, when a pod with the claim is bound to it.

// rebuildPeriod is the time between two looks at all volumes. A real driver watches.
const rebuildPeriod = 50 * time.Millisecond

// Pause makes the driver do nothing for volumes that exist, as if it was down, or go on.
func (d *Driver) Pause(paused bool) {
	d.rebuilding.Lock()
	defer d.rebuilding.Unlock()
	d.paused = paused
}

// Slow makes copies take until it is turned off.
func (d *Driver) Slow(slow bool) {
	d.rebuilding.Lock()
	defer d.rebuilding.Unlock()
	d.slow = slow
}

// lookAtVolumes looks at all volumes.
func (d *Driver) lookAtVolumes(ctx context.Context) {
	d.rebuilding.Lock()
	defer d.rebuilding.Unlock()
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
		if pv.Spec.CSI == nil || pv.Spec.CSI.Driver != d.Name || pv.Spec.ClaimRef == nil || pv.DeletionTimestamp != nil {
			continue
		}
		if err := errors.Join(d.place(ctx, pv), d.attach(ctx, pv)); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Info("Trying again", "volume", pv.Name, "reason", err)
		}
	}
}

// place takes the next step for one volume, if one is due. It starts from what is, not from
// what has happened, so it may be ended anywhere.
func (d *Driver) place(ctx context.Context, pv *corev1.PersistentVolume) error {
	s := d.stateOf(pv)
	if s.named == nil && s.copies == nil {
		return nil // Somebody else has released it, and does not say where it is.
	}
	handle := pv.Spec.CSI.VolumeHandle
	for _, segment := range d.Copies(handle) {
		if !slices.Contains(s.named, segment) && !slices.Contains(s.copies, segment) && segment != s.begun && d.isReachable(segment) {
			d.RemoveCopy(handle, segment) // an old copy, or half of one
		}
	}
	usable := func(segment string) bool { return d.isUsable(handle, segment) }
	if s.copies == nil && slices.ContainsFunc(s.named, usable) {
		return nil
	}
	node, err := d.sentTo(ctx, pv)
	if err != nil || node == "" {
		return err
	}
	// "" is a node that is gone, or has no storage.
	sent := d.segmentOfNode(node)
	homes, isAsking := d.homesOf(handle, s.copies), d.isAsking(pv, node)
	switch {
	case s.copies == nil:
		return d.setState(ctx, pv, state{copies: s.named}) // release
	case s.named != nil && slices.Contains(s.named, sent):
		return d.setState(ctx, pv, state{named: s.named})
	case s.named != nil: // The scheduler has written the claim and has not seen the affinity.
		return d.setState(ctx, pv, state{copies: s.copies})
	case s.begun != "" && (s.begun != sent || !isAsking) || pv.Annotations[homeNodes] != d.list(homes):
		return d.setState(ctx, pv, state{copies: s.copies})
	case slices.Contains(homes, sent) && slices.ContainsFunc(homes, usable):
		return d.setState(ctx, pv, state{named: homes, copies: s.copies})
	case slices.Contains(homes, sent) || !isAsking:
		return nil
	}
	if err := d.beginCopy(pv, sent); err != nil {
		return err
	}
	if s.begun == "" {
		return d.setState(ctx, pv, state{copies: s.copies, begun: sent})
	}
	// Here, a real driver fences the copies at home, and copies.
	if d.slow {
		return nil
	}
	d.endCopy(handle, sent)
	return d.setState(ctx, pv, state{named: []string{sent}, copies: s.copies, begun: sent})
}

// Move moves a volume that no pod uses to a segment, without having been asked.
func (d *Driver) Move(ctx context.Context, pv *corev1.PersistentVolume, segment string) error {
	d.rebuilding.Lock()
	defer d.rebuilding.Unlock()
	if err := d.beginCopy(pv, segment); err != nil {
		return err
	}
	d.endCopy(pv.Spec.CSI.VolumeHandle, segment)
	return d.setState(ctx, pv, state{named: []string{segment}})
}

// beginCopy takes the room for a copy, unless it has it.
func (d *Driver) beginCopy(pv *corev1.PersistentVolume, segment string) error {
	size := pv.Spec.Capacity[corev1.ResourceStorage]
	if i := d.segment(segment); i < 0 || d.put(i, pv.Spec.CSI.VolumeHandle, size.Value(), true) == nil {
		return fmt.Errorf("no room on %q", segment)
	}
	return nil
}

// endCopy makes a copy complete.
func (d *Driver) endCopy(handle, segment string) {
	if i := d.segment(segment); d.complete(i, handle) && !d.SilentRebuild {
		d.changed(i)
	}
}

// RemoveCopy gives back the space of a copy.
func (d *Driver) RemoveCopy(handle, segment string) {
	if i := d.segment(segment); d.remove(i, handle) && !d.SilentRebuild {
		d.changed(i)
	}
}

// Copies returns the segments in which a volume takes space, complete or not.
func (d *Driver) Copies(handle string) []string {
	var segments []string
	for _, place := range d.placesOf(handle) {
		segments = append(segments, d.Segments[place.segment].Name())
	}
	return segments
}

// homesOf returns those of the segments that have the data, and nodes. A node that does not exist
// may come back with it, and shows it then.
func (d *Driver) homesOf(handle string, segments []string) []string {
	return slices.DeleteFunc(slices.Clone(segments), func(segment string) bool {
		return len(d.nodesOf(segment)) == 0 || !d.Has(handle, segment)
	})
}

// nodesOf returns the nodes of a segment that exist.
func (d *Driver) nodesOf(segment string) []*corev1.Node {
	nodes, err := d.nodes.List(labels.SelectorFromSet(d.Segments[d.segment(segment)].Labels))
	if err != nil {
		panic(err) // A cache does not fail.
	}
	return nodes
}

// segmentOfNode returns the segment of a node, or "" if one of them does not exist.
func (d *Driver) segmentOfNode(name string) string {
	node, err := d.nodes.Get(name)
	if err != nil {
		return ""
	}
	if i := d.segmentOf("", node.Labels); i >= 0 {
		return d.Segments[i].Name()
	}
	return ""
}

// isReachable tells whether something can be asked of a node of a segment. One that is not ready may
// come back at any time.
func (d *Driver) isReachable(segment string) bool {
	return slices.ContainsFunc(d.nodesOf(segment), isReachable)
}

func isReachable(node *corev1.Node) bool {
	return !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == corev1.TaintNodeOutOfService })
}

// isUsable tells whether a volume can stay in a segment.
func (d *Driver) isUsable(handle, segment string) bool {
	return d.Has(handle, segment) && slices.ContainsFunc(d.nodesOf(segment), func(node *corev1.Node) bool { return !node.Spec.Unschedulable && isReachable(node) })
}

// sentTo asks the API server, and no cache, where the claim was sent last. It returns nothing
// for a claim that is gone, or was never sent.
func (d *Driver) sentTo(ctx context.Context, pv *corev1.PersistentVolume) (string, error) {
	claim, err := d.client.CoreV1().PersistentVolumeClaims(pv.Spec.ClaimRef.Namespace).Get(ctx, pv.Spec.ClaimRef.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && claim.UID != pv.Spec.ClaimRef.UID {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read claim: %w", err)
	}
	return claim.Annotations[storagehelpers.AnnSelectedNode], nil
}

// isAsking tells whether a node asks for a volume.
func (d *Driver) isAsking(pv *corev1.PersistentVolume, name string) bool {
	if node, err := d.nodes.Get(name); err != nil || !isReachable(node) {
		return false
	}
	if d.AttachRequired {
		return slices.ContainsFunc(d.attachmentsOf(pv), func(a *storagev1.VolumeAttachment) bool { return a.Spec.NodeName == name })
	}
	pods, err := d.pods.Pods(pv.Spec.ClaimRef.Namespace).List(labels.Everything())
	if err != nil {
		panic(err) // A cache does not fail.
	}
	return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		return pod.Spec.NodeName == name && pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
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
		s, segment := d.stateOf(pv), d.segmentOfNode(a.Spec.NodeName)
		isHome := s.named == nil && s.begun == "" && slices.Contains(d.homesOf(pv.Spec.CSI.VolumeHandle, s.copies), segment)
		isNamed := s.copies == nil && slices.Contains(s.named, segment)
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
