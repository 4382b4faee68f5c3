// Package rebuilder is the smallest driver that keeps the contract in
// docs/volume-rebuilding-contract.md. It was written from that page alone, and keeps
// nothing in memory: what it has to know later is on the PersistentVolume, or on the
// disks of the nodes, which package modeldriver has.
//
// There is no kubelet in these tests. A node asks for a volume when there is a
// VolumeAttachment, or, without attachment, when a pod with the claim is bound to it.
package rebuilder

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// selectedNode is where the scheduler says where a claim was sent last.
const selectedNode = "volume.kubernetes.io/selected-node"

// place takes the next step for one volume, if one is due. It starts from what is, not from
// what has happened, so it may be ended anywhere.
func (d *Driver) place(ctx context.Context, pv *corev1.PersistentVolume) error {
	s := stateOf(pv)
	if s.named == nil && s.copies == nil {
		return nil // Somebody else has released it, and does not say where it is.
	}
	for _, node := range d.Copies(pv.Spec.CSI.VolumeHandle) {
		if !slices.Contains(s.named, node) && !slices.Contains(s.copies, node) && node != s.begun && d.isReachable(node) {
			d.RemoveCopy(pv.Spec.CSI.VolumeHandle, node) // an old copy, or half of one
		}
	}
	usable := func(node string) bool { return d.isUsable(pv, node) }
	if s.copies == nil && slices.ContainsFunc(s.named, usable) {
		return nil
	}
	sent, err := d.sentTo(ctx, pv)
	if err != nil || sent == "" {
		return err
	}
	homes, isAsking := d.homesOf(pv, s.copies), d.isAsking(pv, sent)
	switch {
	case s.copies == nil:
		return d.write(ctx, pv, state{copies: s.named}) // release
	case s.named != nil && slices.Contains(s.named, sent):
		return d.write(ctx, pv, state{named: s.named})
	case s.named != nil: // The scheduler has written the claim and has not seen the affinity.
		return d.write(ctx, pv, state{copies: s.copies})
	case s.begun != "" && (s.begun != sent || !isAsking) || pv.Annotations[homeNodes] != d.list(homes):
		return d.write(ctx, pv, state{copies: s.copies})
	case slices.Contains(homes, sent) && slices.ContainsFunc(homes, usable):
		return d.write(ctx, pv, state{named: homes, copies: s.copies})
	case slices.Contains(homes, sent) || !isAsking:
		return nil
	}
	if err := d.copyTo(pv, sent); err != nil {
		return err
	}
	if s.begun == "" {
		return d.write(ctx, pv, state{copies: s.copies, begun: sent})
	}
	// Here, a real driver fences the copies at home, and copies.
	if d.slow {
		return nil
	}
	d.EndCopy(pv.Spec.CSI.VolumeHandle, sent)
	return d.write(ctx, pv, state{named: []string{sent}, copies: s.copies, begun: sent})
}

// Move moves a volume that no pod uses, without having been asked.
func (d *Driver) Move(ctx context.Context, pv *corev1.PersistentVolume, node string) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if err := d.copyTo(pv, node); err != nil {
		return err
	}
	d.EndCopy(pv.Spec.CSI.VolumeHandle, node)
	return d.write(ctx, pv, state{named: []string{node}})
}

// copyTo takes the room for a copy, unless it has it.
func (d *Driver) copyTo(pv *corev1.PersistentVolume, node string) error {
	size := pv.Spec.Capacity[corev1.ResourceStorage]
	if !d.BeginCopy(pv.Spec.CSI.VolumeHandle, node, size.Value()) {
		return errors.New("no room on " + node)
	}
	return nil
}

// homesOf returns those of the nodes that have the data. A node that does not exist may come
// back with it, and shows it then.
func (d *Driver) homesOf(pv *corev1.PersistentVolume, nodes []string) []string {
	return slices.DeleteFunc(slices.Clone(nodes), func(name string) bool {
		_, err := d.nodes.Get(name)
		return err != nil || !d.Has(pv.Spec.CSI.VolumeHandle, name)
	})
}

// isReachable tells whether something can be asked of a node. One that is not ready may
// come back at any time.
func (d *Driver) isReachable(name string) bool {
	node, err := d.nodes.Get(name)
	return err == nil && !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == corev1.TaintNodeOutOfService })
}

// isUsable tells whether a volume can stay on a node.
func (d *Driver) isUsable(pv *corev1.PersistentVolume, name string) bool {
	node, err := d.nodes.Get(name)
	return err == nil && !node.Spec.Unschedulable && d.isReachable(name) && d.Has(pv.Spec.CSI.VolumeHandle, name)
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
	return claim.Annotations[selectedNode], nil
}
