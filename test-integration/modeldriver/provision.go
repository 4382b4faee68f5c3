// SPDX-License-Identifier: Apache-2.0

package modeldriver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
)

// provision creates the volume of a claim, or sends its pod back to the
// scheduler. It does not wait for the PV controller's annotation: there is no
// other driver that could take the claim.
func (d *Driver) provision(ctx context.Context, name cache.ObjectName) error {
	claim, err := d.claims.PersistentVolumeClaims(name.Namespace).Get(name.Name)
	if err != nil {
		return nil // It is gone: a cache does not fail.
	}
	nodeName := claim.Annotations[storagehelpers.AnnSelectedNode]
	if nodeName == "" || claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil {
		return nil
	}
	node, err := d.nodes.Get(nodeName)
	if err != nil {
		return fmt.Errorf("get selected node: %w", err)
	}
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	volume, segment, err := d.createVolume(ctx, &csi.CreateVolumeRequest{
		Name:                      volumeName(claim.UID),
		CapacityRange:             &csi.CapacityRange{RequiredBytes: size.Value()},
		Parameters:                map[string]string{claimParameter: claim.Name, classParameter: storagehelpers.GetPersistentVolumeClaimClass(claim)},
		AccessibilityRequirements: &csi.TopologyRequirement{Preferred: []*csi.Topology{{Segments: node.Labels}}},
	})
	if status.Code(err) == codes.ResourceExhausted {
		klog.FromContext(ctx).Info("No room for volume", "claim", klog.KObj(claim), "node", nodeName, "reason", err)
		err := d.reschedule(ctx, claim)
		if err == nil {
			d.refuse(segment)
		}
		return err
	}
	if err != nil {
		return err
	}
	return d.writeVolume(ctx, claim, volume)
}

// reschedule removes the selected node, as external-provisioner does after the
// error ResourceExhausted.
func (d *Driver) reschedule(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	claim = claim.DeepCopy()
	delete(claim.Annotations, storagehelpers.AnnSelectedNode)
	_, err := d.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, claim, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("remove selected node: %w", err)
	}
	return nil
}

// writeVolume creates the PersistentVolume.
func (d *Driver) writeVolume(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *csi.Volume) error {
	_, err := d.client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        volume.VolumeId,
			Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": d.Name},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: quantity(volume.CapacityBytes)},
			AccessModes:                   claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			StorageClassName:              storagehelpers.GetPersistentVolumeClaimClass(claim),
			VolumeMode:                    claim.Spec.VolumeMode,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: d.Name, VolumeHandle: volume.VolumeId},
			},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			NodeAffinity: affinityOf(volume.AccessibleTopology),
		},
	}, metav1.CreateOptions{})
	switch {
	case err == nil:
		d.provisioned.Add(1)
		if d.VolumeDelay == 0 && !d.confirming.Load() { // that waits for the volume's event
			d.changedBy(volume.VolumeId)
		}
	case !apierrors.IsAlreadyExists(err):
		return fmt.Errorf("create volume: %w", err)
	}
	if d.Bind {
		return d.bind(ctx, claim, volume.VolumeId)
	}
	return nil
}

func (d *Driver) bind(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume string) error {
	claim = claim.DeepCopy()
	claim.Spec.VolumeName = volume
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, "pv.kubernetes.io/bind-completed", "yes")
	_, err := d.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, claim, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("bind claim: %w", err)
	}
	return nil
}

// unprovision gives back the space of a claim that is gone.
func (d *Driver) unprovision(ctx context.Context, claim types.UID) {
	name := volumeName(claim)
	if !d.deleteVolume(name) {
		return
	}
	// The server may be away for a while.
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := d.client.CoreV1().PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{})
		return err == nil || apierrors.IsNotFound(err), nil
	})
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Delete volume", "claim", claim)
	}
}

// volumeName is that of the PersistentVolume of a claim, as external-provisioner names it. It is
// the handle of the volume, too.
func volumeName(claim types.UID) string { return "pvc-" + string(claim) }

// affinityOf is that of a volume in one of some topologies. Without any, every node has access.
func affinityOf(topologies []*csi.Topology) *corev1.VolumeNodeAffinity {
	if len(topologies) == 0 {
		return nil
	}
	var terms []corev1.NodeSelectorTerm
	for _, topology := range topologies {
		var term corev1.NodeSelectorTerm
		for _, key := range slices.Sorted(maps.Keys(topology.Segments)) {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
				Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{topology.Segments[key]}})
		}
		terms = append(terms, term)
	}
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
}
