// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
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
// when one of them can be used again. The list becomes unconfirmed; begun and copied say which copy counts once it is
// confirmed.
func (n Names) set(v Volume, c Cluster) *Change {
	list := v.PV.Annotations[storagehelpers.AnnHomeNodes]
	set := &Change{SetsAffinity: true, Annotations: map[string]any{storagehelpers.AnnHomeNodes: nil, n.key(annUnconfirmed): list}}
	_, exists := c.Nodes[v.Begun.Node]
	if _, isBound := c.Pods[v.Begun.Node]; exists && isBound && v.Copied == v.Begun && c.Selected == v.Begun.Node {
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
		slices.ContainsFunc(nodes, func(node string) bool { return c.Pods[node] })
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

// Answer is what a node does when it is asked to stage a volume.
type Answer string

const (
	// ServeCopy: set in-use, and stage the copy that the node has.
	ServeCopy Answer = "serve"
	// Rebuild: set begun, and make a copy. It is the answer until the affinity is set. If the node has a copy that
	// IsWanted, go on with that one, or answer Aborted if it is complete.
	Rebuild Answer = "rebuild"
	// Wait: something is to be done before, by the controller or by another node. Answer Aborted: the call comes again.
	Wait Answer = "wait"
	// Elsewhere: the volume is, or was sent, elsewhere. The request is an old one: answer Aborted.
	Elsewhere Answer = "elsewhere"
	// InUse: another node may write to the copy that counts, and it cannot be fenced. Answer FailedPrecondition.
	InUse Answer = "in use"
	// Lost: the volume is here by its affinity, and the copy is not. Answer Unavailable, and never make an empty volume.
	Lost Answer = "lost"
)

// Serve decides what a node does that is asked to stage a volume. has is whether it has the copy that counts: by its
// records, one that is named v.Copy and complete. If the records cannot be read, answer Unavailable without asking. If only
// the disk is away, the node has the copy, and answers Unavailable in place of staging: without it, a home would rebuild
// from itself. What is staged at this path already, and in use here, needs no answer of Serve.
func Serve(v Volume, c Cluster, node string, has bool) Answer {
	homes, isUsable := c.present(v.Homes)
	isHome, isBegunElsewhere := slices.Contains(homes, node), v.Begun.Node != "" && v.Begun.Node != node
	_, exists := c.Nodes[node]
	switch isInUseElsewhere := v.InUse.Node != "" && v.InUse.Node != node; {
	case c.IsClaimGone, v.Affinity != nil && !slices.Contains(v.Affinity, node):
		return Elsewhere
	case v.IsUnconfirmed, c.Nodes[node].IsOff: // It may be taken back. Of a node that is off, others are told that nothing writes there.
		return Wait
	case v.Affinity != nil && !has:
		return Lost
	case isInUseElsewhere && (v.Affinity != nil || c.Selected == node):
		return InUse
	case isInUseElsewhere:
		return Elsewhere
	case v.Affinity != nil:
		return ServeCopy
	case isHome && has && c.Selected != node && isBegunElsewhere && v.Begun.Node == c.Selected:
		return Elsewhere
	case isHome && has && (isBegunElsewhere || c.Selected == node && isUsable): // The controller removes begun, or sets the affinity.
		return Wait
	case isHome && has:
		return ServeCopy
	case c.Selected != node:
		return Elsewhere
	case has || isBegunElsewhere || !exists: // It is to be shown first, or begun is to be removed.
		return Wait
	}
	return Rebuild
}

// Use sets in-use, before a node stages the copy that counts.
func (n Names) Use(v Volume, node string) *Change {
	return n.mark(annInUse, v.InUse, Mark{node, v.Copy})
}

// Unuse removes in-use, after nothing on the node can write any more.
func (n Names) Unuse(v Volume, node string) *Change {
	return n.remove(v.InUse.Node == node, annInUse)
}

// Begin sets begun, before the first byte of a copy.
func (n Names) Begin(node, copy string) *Change {
	return &Change{Annotations: map[string]any{n.key(annBegun): Mark{node, copy}.String(), n.key(annCopied): nil}}
}

// IsWanted tells whether a copy that a node makes or has made, and that does not count yet, is still wanted.
func IsWanted(v Volume, node, copy string) bool {
	return v.Begun == Mark{node, copy} && (v.Affinity == nil || v.IsUnconfirmed && slices.Contains(v.Affinity, node))
}

// Complete sets copied, when a copy that is wanted is complete and durable.
func (n Names) Complete(v Volume, node, copy string) *Change {
	return n.mark(annCopied, v.Copied, Mark{node, copy})
}

// Cancel removes begun and copied, before a node gives up a copy. Do not call it while v.IsUnconfirmed and begun is of this
// node: answer Aborted. Nil means that there is nothing to write, and not that the copy may be removed: never remove v.Copy.
func (n Names) Cancel(v Volume, node string) *Change {
	return n.remove(v.Begun.Node == node || v.Copied.Node == node, annBegun, annCopied)
}

// Show says that a node has the copy that counts of a released volume, if the list does not. It has opened the copy.
func (n Names) Show(v Volume, node string, uid types.UID) *Change {
	if v.Affinity != nil || slices.Contains(v.Homes, storagehelpers.HomeNode{Name: node, UID: uid}) || !slices.Contains(v.ReleasedFrom, node) {
		return nil
	}
	return n.mark(annShown, v.Shown, Mark{node, string(uid) + "/" + v.Copy})
}

func (n Names) mark(name string, before, now Mark) *Change {
	if before == now {
		return nil
	}
	return &Change{Annotations: map[string]any{n.key(name): now.String()}}
}

func (n Names) remove(isThere bool, names ...string) *Change {
	if !isThere {
		return nil
	}
	change := &Change{Annotations: map[string]any{}}
	for _, name := range names {
		change.Annotations[n.key(name)] = nil
	}
	return change
}
