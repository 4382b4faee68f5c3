// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/storage/ephemeral"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// API reads from the API server, never from a cache, and changes PersistentVolumes. Calls end with their contexts.
type API struct {
	Names
	Client kubernetes.Interface
}

// Volume returns the volume with a handle. If there is no PersistentVolume of the name that is one of the handle, its PV is nil.
func (a API) Volume(ctx context.Context, name, handle string) (Volume, error) {
	pv, err := a.Client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (!a.IsOurs(pv) || pv.Spec.CSI.VolumeHandle != handle) {
		return Volume{}, nil
	}
	if err != nil {
		return Volume{}, err
	}
	return a.VolumeOf(pv), nil
}

// IsOurs tells whether a PersistentVolume is one of the driver.
func (n Names) IsOurs(pv *corev1.PersistentVolume) bool {
	return pv.Spec.CSI != nil && pv.Spec.CSI.Driver == n.Driver
}

// Cluster returns what the decisions about a volume need, besides it. Nodes do not see pods.
func (a API) Cluster(ctx context.Context, v Volume, nodes ...string) (c Cluster, err error) {
	ref := ptr.Deref(v.PV.Spec.ClaimRef, corev1.ObjectReference{})
	claim := &corev1.PersistentVolumeClaim{}
	if ref.UID != "" {
		claim, err = a.Client.CoreV1().PersistentVolumeClaims(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return c, err
		}
	}
	c.IsClaimGone = ref.UID == "" || err != nil || claim.UID != ref.UID
	if !c.IsClaimGone {
		c.Selected = claim.Annotations[storagehelpers.AnnSelectedNode]
	}
	nodes = append(nodes, v.InUse.Node, v.Begun.Node, v.Shown.Node, c.Selected)
	c.Nodes, err = nodesOf(slices.Concat(nodes, v.Affinity, namesOf(v.Homes)), func(name string) (*corev1.Node, error) {
		return a.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	})
	return c, err
}

// nodesOf returns the nodes that exist.
func nodesOf(names []string, get func(name string) (*corev1.Node, error)) (map[string]Node, error) {
	nodes := map[string]Node{}
	for _, name := range names {
		if _, ok := nodes[name]; ok || name == "" {
			continue
		}
		node, err := get(name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		nodes[name] = nodeOf(node)
	}
	return nodes, nil
}

func nodeOf(node *corev1.Node) Node {
	isOff := slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == corev1.TaintNodeOutOfService })
	return Node{UID: node.UID, IsOff: isOff, IsUsable: !isOff && !node.Spec.Unschedulable}
}

// addPods looks for pods that use the claim of a volume.
func (a API) addPods(ctx context.Context, v Volume, c *Cluster) error {
	ref := v.PV.Spec.ClaimRef
	pods, err := a.Client.CoreV1().Pods(ref.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	c.Pods = map[string]bool{}
	for _, pod := range pods.Items {
		isUser := slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
			claim := volume.PersistentVolumeClaim
			return claim != nil && claim.ClaimName == ref.Name || volume.Ephemeral != nil && ephemeral.VolumeClaimName(&pod, &volume) == ref.Name
		})
		isEnded := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if node := pod.Spec.NodeName; isUser && !isEnded && node != "" {
			c.Pods[node] = c.Pods[node] || pod.Status.Phase == corev1.PodRunning
		}
	}
	return nil
}

// Patch writes a change, unless the volume was changed since it was read. Nil changes nothing. To take an affinity away, the
// API server needs the feature gate MutablePVNodeAffinity.
func (a API) Patch(ctx context.Context, v Volume, change *Change) (Volume, error) {
	if change == nil {
		return v, nil
	}
	patch := map[string]any{"metadata": map[string]any{"resourceVersion": v.PV.ResourceVersion, "annotations": change.Annotations}}
	if change.SetsAffinity {
		var affinity *corev1.VolumeNodeAffinity
		if len(change.Affinity) > 0 {
			affinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: a.TopologyKey, Operator: corev1.NodeSelectorOpIn, Values: change.Affinity}},
			}}}}
		}
		patch["spec"] = map[string]any{"nodeAffinity": affinity}
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return v, err
	}
	pv, err := a.Client.CoreV1().PersistentVolumes().Patch(ctx, v.PV.Name, types.MergePatchType, data, metav1.PatchOptions{})
	if err != nil {
		return v, fmt.Errorf("change PersistentVolume %s: %w", v.PV.Name, err)
	}
	klog.FromContext(ctx).Info("Changed PersistentVolume", "PV", pv.Name, "reason", change.Reason, "affinity", change.Affinity, "annotations", change.Annotations)
	return a.VolumeOf(pv), nil
}
