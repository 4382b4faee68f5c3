package rebuilder

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// homeNodes has the nodes with the data of a released volume that exist, as name=UID.
	homeNodes = "pv.kubernetes.io/home-nodes"
	// annCopies has the names of all nodes with the data, from when the volume is released
	// until a node affinity is set and confirmed.
	annCopies = "rebuilder.example.com/copies"
	// annBegun has the node for which a copy was begun.
	annBegun = "rebuilder.example.com/begun"
)

// state is what a PersistentVolume says about where its volume is.
type state struct {
	// named are the nodes in the node affinity, or nil if that is unset.
	named []string
	// copies are the nodes with the data, or nil. With named, the claim has to be read again.
	copies []string
	begun  string
}

func stateOf(pv *corev1.PersistentVolume) state {
	s := state{begun: pv.Annotations[annBegun]}
	if affinity := pv.Spec.NodeAffinity; affinity != nil {
		for _, term := range affinity.Required.NodeSelectorTerms {
			s.named = append(s.named, term.MatchExpressions[0].Values...)
		}
	}
	if copies := pv.Annotations[annCopies]; copies != "" {
		s.copies = strings.Split(copies, ",")
	}
	return s
}

// IsConfirmed tells whether the driver has read the claim again since it has set the node affinity. Until then it may
// take the affinity away.
func IsConfirmed(pv *corev1.PersistentVolume) bool { return stateOf(pv).copies == nil }

// write changes the state with one PATCH, unless somebody has changed the volume since it
// was read. The API server needs the feature gate MutablePVNodeAffinity.
func (d *Driver) write(ctx context.Context, pv *corev1.PersistentVolume, s state) error {
	annotations := map[string]any{homeNodes: nil, annCopies: nil, annBegun: nil} // nil removes
	if s.copies != nil {
		annotations[annCopies] = strings.Join(s.copies, ",")
	}
	if s.begun != "" {
		annotations[annBegun] = s.begun
	}
	var affinity *corev1.VolumeNodeAffinity
	if s.named != nil {
		affinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: s.named}},
		}}}}
	} else {
		annotations[homeNodes] = d.list(d.homesOf(pv, s.copies))
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": pv.ResourceVersion, "annotations": annotations},
		"spec":     map[string]any{"nodeAffinity": affinity},
	})
	if err != nil {
		return err
	}
	if _, err := d.client.CoreV1().PersistentVolumes().Patch(ctx, pv.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("change where the volume is: %w", err)
	}
	return nil
}

// list returns the annotation for these nodes.
func (d *Driver) list(nodes []string) string {
	var entries []string
	for _, name := range nodes {
		if node, err := d.nodes.Get(name); err == nil {
			entries = append(entries, name+"="+string(node.UID))
		}
	}
	return strings.Join(entries, ",")
}
