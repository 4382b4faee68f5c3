// SPDX-License-Identifier: Apache-2.0

package modeldriver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// homeNodes has the nodes with the data of a released volume that exist, as name=UID.
	homeNodes = "pv.kubernetes.io/home-nodes"
	// annCopies has the names of all segments with the data, from when the volume is released
	// until a node affinity is set and confirmed.
	annCopies = "rebuilder.example.com/copies"
	// annBegun has the segment for which a copy was begun.
	annBegun = "rebuilder.example.com/begun"
)

// state is what a PersistentVolume says about where its volume is.
type state struct {
	// named are the segments in the node affinity, or nil if that is unset.
	named []string
	// copies are the segments with the data, or nil. With named, the claim has to be read again.
	copies []string
	begun  string
}

func (d *Driver) stateOf(pv *corev1.PersistentVolume) state {
	s := state{begun: pv.Annotations[annBegun]}
	if affinity := pv.Spec.NodeAffinity; affinity != nil {
		for _, term := range affinity.Required.NodeSelectorTerms {
			labels := map[string]string{}
			for _, e := range term.MatchExpressions {
				labels[e.Key] = e.Values[0]
			}
			if i := d.segmentOf("", labels); i >= 0 {
				s.named = append(s.named, d.Segments[i].Name())
			}
		}
	}
	if !IsConfirmed(pv) {
		s.copies = strings.Split(pv.Annotations[annCopies], ",")
	}
	return s
}

// IsConfirmed tells whether the driver has read the claim again since it has set the node affinity. Until then it may
// take the affinity away.
func IsConfirmed(pv *corev1.PersistentVolume) bool { return pv.Annotations[annCopies] == "" }

// setState changes it with one PATCH, unless somebody has changed the volume since it
// was read. The API server needs the feature gate MutablePVNodeAffinity.
func (d *Driver) setState(ctx context.Context, pv *corev1.PersistentVolume, s state) error {
	annotations := map[string]any{homeNodes: nil, annCopies: nil, annBegun: nil} // nil removes
	if s.copies != nil {
		annotations[annCopies] = strings.Join(s.copies, ",")
	}
	if s.begun != "" {
		annotations[annBegun] = s.begun
	}
	var affinity *corev1.VolumeNodeAffinity
	if s.named != nil {
		var places []place
		for _, name := range s.named {
			places = append(places, place{segment: d.segment(name)})
		}
		affinity = affinityOf(d.accessible(places))
	} else {
		annotations[homeNodes] = d.list(d.homesOf(pv.Spec.CSI.VolumeHandle, s.copies))
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

// list returns the annotation for these segments. What a topology label says need not be the name
// of the node.
func (d *Driver) list(segments []string) string {
	var entries []string
	for _, segment := range segments {
		for _, node := range d.nodesOf(segment) {
			entries = append(entries, node.Name+"="+string(node.UID))
		}
	}
	slices.Sort(entries)
	return strings.Join(entries, ",")
}
