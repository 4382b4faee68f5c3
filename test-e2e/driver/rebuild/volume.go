// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
)

// Names are what a driver calls things.
type Names struct {
	// Driver is the name of the CSIDriver.
	Driver string
	// TopologyKey is that of its topology. Its values are names of nodes.
	TopologyKey string
}

// Annotations, after the name of the driver and a slash.
const (
	annInUse        = "in-use"
	annBegun        = "begun"
	annCopied       = "copied"
	annShown        = "shown"
	annCopy         = "copy"
	annUnconfirmed  = "unconfirmed"
	annReleasedFrom = "released-from"
)

// Mark is what a node has written of itself: NODE/ID.
type Mark struct{ Node, ID string }

func (m Mark) String() string { return m.Node + "/" + m.ID }

// FirstCopy is the one that CreateVolume has made. Two nodes may be asked to create a volume, and then both have one. So
// the handle of a volume has to contain the name of the node, as NAME@NODE.
const FirstCopy = "first"

// Volume is a PersistentVolume as it was read.
type Volume struct {
	PV *corev1.PersistentVolume
	// Affinity has the nodes that the affinity names, sorted. Nil: it is unset. Empty: it names none by the topology key, and
	// the volume is left alone.
	Affinity []string
	// Homes is the list of home nodes, which counts while the affinity is unset.
	Homes []storagehelpers.HomeNode
	// Copy is the one that counts.
	Copy                        string
	InUse, Begun, Copied, Shown Mark
	// IsUnconfirmed tells that an affinity was set, and that the claim was not read again.
	IsUnconfirmed bool
	// ReleasedFrom has the nodes in the last affinity.
	ReleasedFrom []string
}

// VolumeOf reads a PersistentVolume.
func (n Names) VolumeOf(pv *corev1.PersistentVolume) Volume {
	v := Volume{PV: pv, Copy: FirstCopy}
	if a := pv.Spec.NodeAffinity; a != nil {
		nodes := sets.New[string]()
		for _, term := range ptr.Deref(a.Required, corev1.NodeSelector{}).NodeSelectorTerms {
			for _, e := range term.MatchExpressions {
				if e.Key == n.TopologyKey && e.Operator == corev1.NodeSelectorOpIn {
					nodes.Insert(e.Values...)
				}
			}
		}
		v.Affinity = sets.List(nodes)
	} else {
		v.Homes, _ = storagehelpers.HomeNodesOf(pv)
	}
	for key, mark := range map[string]*Mark{annInUse: &v.InUse, annBegun: &v.Begun, annCopied: &v.Copied, annShown: &v.Shown} {
		mark.Node, mark.ID, _ = strings.Cut(pv.Annotations[n.key(key)], "/")
	}
	if value := pv.Annotations[n.key(annCopy)]; value != "" {
		v.Copy = value
	}
	if value := pv.Annotations[n.key(annReleasedFrom)]; value != "" {
		v.ReleasedFrom = strings.Split(value, ",")
	}
	_, v.IsUnconfirmed = pv.Annotations[n.key(annUnconfirmed)]
	return v
}

func (n Names) key(name string) string { return n.Driver + "/" + name }

// Owners are the nodes that have the volume by the API server, and delete it: those in the affinity, else in the list.
func (v Volume) Owners() []string {
	if v.Affinity != nil {
		return v.Affinity
	}
	return namesOf(v.Homes)
}

// Node is a Node object that exists.
type Node struct {
	UID types.UID
	// IsUsable tells that it is neither cordoned nor out of service. One that is not ready may still write.
	IsUsable bool
	// IsOff tells that it is out of service, which is the promise that nothing on it writes any more.
	IsOff bool
}

// Cluster is what else the API server says, when it was asked.
type Cluster struct {
	// Selected is the node where the claim was sent last, or nothing.
	Selected string
	// IsClaimGone tells that there is no claim of the volume, or another one of its name.
	IsClaimGone bool
	// Nodes are those of interest that exist, by name.
	Nodes map[string]Node
	// Pods has the nodes of pods that use the claim, and whether one runs there. Only the controller looks.
	Pods map[string]bool
}

// present returns the homes that exist, with the UIDs in the list.
func (c Cluster) present(homes []storagehelpers.HomeNode) (names []string, isUsable bool) {
	for _, h := range homes {
		if n, ok := c.Nodes[h.Name]; ok && n.UID == h.UID {
			names, isUsable = append(names, h.Name), isUsable || n.IsUsable
		}
	}
	return names, isUsable
}

func namesOf(homes []storagehelpers.HomeNode) (names []string) {
	for _, h := range homes {
		names = append(names, h.Name)
	}
	return names
}
