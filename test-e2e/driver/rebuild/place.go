// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"slices"
	"strings"

	storagehelpers "k8s.io/component-helpers/storage/volume"
)

// Change is one PATCH of a PersistentVolume.
type Change struct {
	// Reason is logged.
	Reason string
	// Annotations are set, or removed where they are nil.
	Annotations map[string]any
	// Affinity has the nodes that the affinity is to name, if SetsAffinity. None: it is unset.
	Affinity     []string
	SetsAffinity bool
}

// Next returns what the controller has to change, or nil. After each change it is to be asked again, with what the API
// server says then: that is the second look at the claim.
func (n Names) Next(v Volume, c Cluster) *Change {
	isSet := v.Affinity != nil
	switch {
	case isSet && len(v.Affinity) == 0:
		return nil
	case v.InUse.Node != "" && c.Nodes[v.InUse.Node].IsOff:
		return &Change{Reason: "node is out of service", Annotations: map[string]any{n.key(annInUse): nil}}
	case v.IsUnconfirmed:
		return n.confirm(v, c)
	case v.Begun.Node != "" && (isSet || c.Selected != "" && v.Begun.Node != c.Selected):
		return &Change{Reason: "sent elsewhere", Annotations: map[string]any{n.key(annBegun): nil, n.key(annCopied): nil}}
	case !isSet && v.Shown.Node != "":
		return n.list(v, c)
	case c.IsClaimGone:
		return nil
	case isSet:
		return n.release(v, c)
	}
	return n.set(v, c)
}

// release unsets the affinity if it names no node that can be used, and lists those that exist.
func (n Names) release(v Volume, c Cluster) *Change {
	var homes []storagehelpers.HomeNode
	for _, name := range v.Affinity {
		node, ok := c.Nodes[name]
		if node.IsUsable {
			return nil
		}
		if ok {
			homes = append(homes, storagehelpers.HomeNode{Name: name, UID: node.UID})
		}
	}
	return &Change{Reason: "released", SetsAffinity: true, Annotations: map[string]any{
		storagehelpers.AnnHomeNodes: storagehelpers.FormatHomeNodes(homes), n.key(annReleasedFrom): strings.Join(v.Affinity, ","),
	}}
}

// set sets the affinity of a released volume: to the node that has made a copy, where a pod waits for it, or to all homes
// when one of them can be used again. The list becomes unconfirmed; begun and copied
// say which copy counts once it is confirmed.
func (n Names) set(v Volume, c Cluster) *Change {
	list := v.PV.Annotations[storagehelpers.AnnHomeNodes]
	set := &Change{SetsAffinity: true, Annotations: map[string]any{storagehelpers.AnnHomeNodes: nil, n.key(annUnconfirmed): list}}
	if _, exists := c.Nodes[v.Begun.Node]; exists && v.Copied == v.Begun && c.Selected == v.Begun.Node && slices.Contains(c.Bound, v.Begun.Node) {
		set.Reason, set.Affinity = "rebuilt", []string{v.Begun.Node}
		return set
	}
	homes, isUsable := c.present(v.Homes)
	isFree := v.InUse.Node == "" || slices.Contains(homes, v.InUse.Node)
	if !isUsable || !isFree || !fits(homes, c) {
		return nil
	}
	set.Reason, set.Affinity = "returned", homes
	return set
}

// fits tells whether an affinity fits to where the claim was sent: the contract's rule.
func fits(nodes []string, c Cluster) bool {
	return c.Selected == "" || slices.Contains(nodes, c.Selected) ||
		slices.ContainsFunc(c.Running, func(node string) bool { return slices.Contains(nodes, node) })
}

// confirm looks at the claim after an affinity was set, perhaps by a process that was killed then.
func (n Names) confirm(v Volume, c Cluster) *Change {
	change := &Change{Reason: "confirmed", Annotations: map[string]any{n.key(annUnconfirmed): nil, n.key(annBegun): nil, n.key(annCopied): nil}}
	isRebuilt := v.Copied == v.Begun && slices.Equal(v.Affinity, []string{v.Begun.Node})
	switch {
	case !c.IsClaimGone && !fits(v.Affinity, c): // without a claim, the affinity stays
		change.Reason, change.SetsAffinity = "taken back", true
		change.Annotations[storagehelpers.AnnHomeNodes] = v.PV.Annotations[n.key(annUnconfirmed)]
	case isRebuilt:
		change.Annotations[n.key(annCopy)] = v.Copied.ID
	}
	return change
}

// list adds a node that has shown the copy that counts to the list, under the UID of its Node object. Only a node from
// which the volume was released can have it.
func (n Names) list(v Volume, c Cluster) *Change {
	change := &Change{Reason: "shown", Annotations: map[string]any{n.key(annShown): nil}}
	uid, copy, _ := strings.Cut(v.Shown.ID, "/")
	if node, ok := c.Nodes[v.Shown.Node]; ok && string(node.UID) == uid && copy == v.Copy && slices.Contains(v.ReleasedFrom, v.Shown.Node) {
		homes := slices.DeleteFunc(slices.Clone(v.Homes), func(h storagehelpers.HomeNode) bool { return h.Name == v.Shown.Node })
		change.Annotations[storagehelpers.AnnHomeNodes] = storagehelpers.FormatHomeNodes(append(homes, storagehelpers.HomeNode{Name: v.Shown.Node, UID: node.UID}))
	}
	return change
}
