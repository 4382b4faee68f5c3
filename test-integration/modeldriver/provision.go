package modeldriver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
)

// selectedNode is where the scheduler tells the provisioner its decision.
const selectedNode = "volume.kubernetes.io/selected-node"

// provision creates the volume of a claim, or sends its pod back to the
// scheduler. It does not wait for the PV controller's annotation: there is no
// other driver that could take the claim.
func (d *Driver) provision(ctx context.Context, key string) error {
	claim, err := d.claim(key)
	if claim == nil || err != nil {
		return err
	}
	nodeName := claim.Annotations[selectedNode]
	if nodeName == "" || claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil {
		return nil
	}
	node, err := d.nodes.Get(nodeName)
	if err != nil {
		return fmt.Errorf("get selected node: %w", err)
	}
	if d.config.Refuses != nil {
		if err := d.config.Refuses(claim); err != nil {
			return err
		}
	}
	size, segment := d.sizeOf(claim), d.segmentOf(node, storagehelpers.GetPersistentVolumeClaimClass(claim))
	if segment < 0 || !d.storage[segment].allocate(claim.UID, size) {
		klog.FromContext(ctx).Info("No room for volume", "claim", klog.KObj(claim), "node", nodeName, "size", size)
		if err := d.reschedule(ctx, claim); err != nil {
			return err
		}
		d.failed.Add(1)
		return nil
	}
	if d.config.VolumeDelay > 0 {
		d.changed(segment)
		select {
		case <-time.After(d.config.VolumeDelay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return d.createVolume(ctx, claim, segment)
}

// sizeOf returns the bytes that the volume of a claim has.
func (d *Driver) sizeOf(claim *corev1.PersistentVolumeClaim) int64 {
	request := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	size := request.Value()
	if unit := d.config.RoundUp; unit > 0 {
		size = (size + unit - 1) / unit * unit
	}
	return size
}

// claim returns the claim of a key, or nil if it is gone.
func (d *Driver) claim(key string) (*corev1.PersistentVolumeClaim, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, err
	}
	claim, err := d.claims.PersistentVolumeClaims(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return claim, err
}

// segmentOf returns the first segment with storage of the class that the node has access
// to, or -1.
func (d *Driver) segmentOf(node *corev1.Node, class string) int {
	for i := range d.config.Segments {
		if d.config.Segments[i].serves(class, node.Labels) {
			return i
		}
	}
	return -1
}

// reschedule removes the selected node, as external-provisioner does after the
// error ResourceExhausted.
func (d *Driver) reschedule(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	claim = claim.DeepCopy()
	delete(claim.Annotations, selectedNode)
	_, err := d.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, claim, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("remove selected node: %w", err)
	}
	return nil
}

func (d *Driver) createVolume(ctx context.Context, claim *corev1.PersistentVolumeClaim, segment int) error {
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        volumeName(claim.UID),
			Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": d.config.Name},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: quantity(d.sizeOf(claim))},
			AccessModes:                   claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			StorageClassName:              storagehelpers.GetPersistentVolumeClaimClass(claim),
			VolumeMode:                    claim.Spec.VolumeMode,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: d.config.Name, VolumeHandle: string(claim.UID)},
			},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			NodeAffinity: affinity(d.copy(claim, segment)...),
		},
	}
	_, err := d.client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	switch {
	case err == nil:
		d.provisioned.Add(1)
		if d.config.VolumeDelay == 0 && !d.confirming.Load() { // that waits for the volume's event
			d.changed(segment)
		}
	case !apierrors.IsAlreadyExists(err):
		return fmt.Errorf("create volume: %w", err)
	}
	if d.config.Bind {
		return d.bind(ctx, claim)
	}
	return nil
}

// copy places the other copies of a new volume, and returns where all of them are.
func (d *Driver) copy(claim *corev1.PersistentVolumeClaim, segment int) []map[string]string {
	all := []map[string]string{d.config.Segments[segment].Labels}
	for other := range d.storage {
		if len(all) < d.config.Copies && other != segment && d.storage[other].allocate(claim.UID, d.sizeOf(claim)) {
			all = append(all, d.config.Segments[other].Labels)
			d.changed(other)
		}
	}
	return all
}

func (d *Driver) bind(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	claim = claim.DeepCopy()
	claim.Spec.VolumeName = volumeName(claim.UID)
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, "pv.kubernetes.io/bind-completed", "yes")
	_, err := d.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, claim, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("bind claim: %w", err)
	}
	return nil
}

// deleteVolume gives back the space of a claim that is gone.
func (d *Driver) deleteVolume(ctx context.Context, claim types.UID) {
	for segment, s := range d.storage {
		if !s.release(claim) {
			continue
		}
		d.changed(segment)
		// The server may be away for a while.
		err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
			err := d.client.CoreV1().PersistentVolumes().Delete(ctx, volumeName(claim), metav1.DeleteOptions{})
			return err == nil || apierrors.IsNotFound(err), nil
		})
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Delete volume", "claim", claim)
		}
	}
}

func volumeName(claim types.UID) string { return "pvc-" + string(claim) }

// affinity requires all labels of one of the segments. Without labels, every node has
// access.
func affinity(segments ...map[string]string) *corev1.VolumeNodeAffinity {
	var terms []corev1.NodeSelectorTerm
	for _, labels := range segments {
		if len(labels) == 0 {
			return nil
		}
		var term corev1.NodeSelectorTerm
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
				Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{labels[key]}})
		}
		terms = append(terms, term)
	}
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
}
