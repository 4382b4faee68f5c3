package rebuild

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

const (
	// annCopies has the nodes with a copy, separated by commas. It is there while the
	// node affinity does not name all of them.
	annCopies = "reference.csi.capacityv2.internal/copies"
	// annSentTo is where the claim was sent last when the node affinity was unset. It
	// is there until the volume is home again, or elsewhere.
	annSentTo = "reference.csi.capacityv2.internal/sent-to"
)

// placement is what a PersistentVolume says about where its volume is.
type placement struct {
	// named are the nodes in the node affinity, sorted. Empty: it is unset.
	named []string
	// copies are the nodes with a copy, sorted.
	copies []string
	// sentTo is nil if the node affinity has not been unset.
	sentTo *string
}

func (c *Controller) placementOf(pv *corev1.PersistentVolume) placement {
	var p placement
	if a := pv.Spec.NodeAffinity; a != nil && a.Required != nil {
		for _, term := range a.Required.NodeSelectorTerms {
			for _, e := range term.MatchExpressions {
				if e.Key == c.key && e.Operator == corev1.NodeSelectorOpIn {
					p.named = append(p.named, e.Values...)
				}
			}
		}
	}
	p.named = unique(p.named)
	p.copies = p.named
	if s := pv.Annotations[annCopies]; s != "" {
		p.copies = unique(strings.Split(s, ","))
	}
	if s, ok := pv.Annotations[annSentTo]; ok {
		p.sentTo = &s
	}
	return p
}

func unique(nodes []string) []string {
	nodes = slices.Sorted(slices.Values(nodes))
	return slices.Compact(nodes)
}

// write changes what a PersistentVolume says, unless it was changed since it was read.
// The API server needs the feature gate MutablePVNodeAffinity.
func (c *Controller) write(ctx context.Context, pv *corev1.PersistentVolume, p placement, reason string) (*corev1.PersistentVolume, error) {
	annotations := map[string]any{annCopies: nil, annSentTo: nil} // nil removes
	if !slices.Equal(p.named, p.copies) || p.sentTo != nil {
		annotations[annCopies] = strings.Join(p.copies, ",")
	}
	if p.sentTo != nil {
		annotations[annSentTo] = *p.sentTo
	}
	var affinity *corev1.VolumeNodeAffinity
	if len(p.named) > 0 {
		affinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: c.key, Operator: corev1.NodeSelectorOpIn, Values: p.named}},
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
		return nil, fmt.Errorf("change node affinity of volume %s: %w", pv.Name, err)
	}
	if reason != "" {
		Placements.WithLabelValues(reason).Inc()
		klog.FromContext(ctx).Info("Changed node affinity", "PV", pv.Name, "reason", reason, "nodes", p.named, "copies", p.copies)
	}
	return changed, nil
}
