package rebuild

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
)

const (
	// annBegun has the node for which a copy was begun. It counts while the claim is
	// sent there.
	annBegun = "reference.csi.capacityv2.internal/begun"
	// annUnconfirmed is there while an affinity was set and the claim was not read
	// again. Its value is the list of home nodes from before.
	annUnconfirmed = "reference.csi.capacityv2.internal/unconfirmed"
)

// named returns the nodes in the node affinity, sorted. None: the volume is released.
func (c *Controller) named(pv *corev1.PersistentVolume) (nodes []string) {
	if a := pv.Spec.NodeAffinity; a != nil && a.Required != nil {
		for _, term := range a.Required.NodeSelectorTerms {
			for _, e := range term.MatchExpressions {
				if e.Key == c.key && e.Operator == corev1.NodeSelectorOpIn {
					nodes = append(nodes, e.Values...)
				}
			}
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// release unsets the node affinity, and says which nodes have the data.
func (c *Controller) release(ctx context.Context, pv *corev1.PersistentVolume, homes, reason string) error {
	_, err := c.patch(ctx, pv, reason, map[string]any{storagehelpers.AnnHomeNodes: homes, annUnconfirmed: nil, annBegun: nil}, nil)
	return err
}

// set sets the node affinity of a released volume, if it admits the node where its claim was
// sent last. The scheduler writes the claim first and reads the volume then; this is the
// other way round, so one of both notices.
func (c *Controller) set(ctx context.Context, pv *corev1.PersistentVolume, nodes []string, reason string) error {
	if ok, err := c.admits(ctx, pv, nodes); err != nil || !ok {
		return cmp.Or(err, elsewhere(pv))
	}
	pv, err := c.patch(ctx, pv, reason, map[string]any{
		storagehelpers.AnnHomeNodes: nil, annUnconfirmed: pv.Annotations[storagehelpers.AnnHomeNodes],
	}, nodes)
	if err != nil {
		return err
	}
	_, err = c.confirm(ctx, pv)
	return err
}

// confirm looks at the claim again after an affinity was set, perhaps by a controller that
// was killed then, and releases the volume again if the claim was sent elsewhere.
func (c *Controller) confirm(ctx context.Context, pv *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	before, ok := pv.Annotations[annUnconfirmed]
	if !ok {
		return pv, nil
	}
	ok, err := c.admits(ctx, pv, c.named(pv))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, cmp.Or(c.release(ctx, pv, before, "taken back"), elsewhere(pv))
	}
	return c.patch(ctx, pv, "", map[string]any{annUnconfirmed: nil, annBegun: nil}, c.named(pv))
}

// patch changes annotations and the node affinity, unless the PersistentVolume was changed
// since it was read. A nil annotation is removed. The API server needs the feature gate
// MutablePVNodeAffinity.
func (c *Controller) patch(ctx context.Context, pv *corev1.PersistentVolume, reason string, annotations map[string]any, nodes []string) (*corev1.PersistentVolume, error) {
	var affinity *corev1.VolumeNodeAffinity
	if len(nodes) > 0 {
		affinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: c.key, Operator: corev1.NodeSelectorOpIn, Values: nodes}},
		}}}}
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": pv.ResourceVersion, "annotations": annotations},
		"spec":     map[string]any{"nodeAffinity": affinity},
	})
	if err != nil {
		return nil, err
	}
	changed, err := c.client.CoreV1().PersistentVolumes().Patch(ctx, pv.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return nil, fmt.Errorf("change where PersistentVolume %s is: %w", pv.Name, err)
	}
	if reason != "" {
		Placements.WithLabelValues(reason).Inc()
		klog.FromContext(ctx).Info("Changed node affinity", "PV", pv.Name, "reason", reason, "nodes", nodes, "annotations", annotations)
	}
	return changed, nil
}
