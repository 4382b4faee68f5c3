// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Answer is what a node does when it is asked to stage a volume.
type Answer string

const (
	// ServeCopy: set in-use, and stage the copy that the node has.
	ServeCopy Answer = "serve"
	// Rebuild: set begun, and make a copy.
	Rebuild Answer = "rebuild"
	// Wait: something is to be done before, by the controller or by another node. The call comes again.
	Wait Answer = "wait"
	// Elsewhere: the volume is, or was sent, elsewhere. The request is an old one.
	Elsewhere Answer = "elsewhere"
	// InUse: another node may write to the copy that counts, and it cannot be fenced.
	InUse Answer = "in use"
	// Lost: the volume is here by its affinity, and the copy is not.
	Lost Answer = "lost"
)

// Serve decides what a node does that is asked to stage a volume. has is whether it has the copy that counts.
func Serve(v Volume, c Cluster, node string, has bool) Answer {
	homes, isUsable := c.present(v.Homes)
	isHome, isBegunElsewhere := slices.Contains(homes, node), v.Begun.Node != "" && v.Begun.Node != node
	_, exists := c.Nodes[node]
	switch isInUseElsewhere := v.InUse.Node != "" && v.InUse.Node != node; {
	case c.IsClaimGone, v.Affinity != nil && !slices.Contains(v.Affinity, node):
		return Elsewhere
	case v.IsUnconfirmed: // It may be taken back, and a copy that was written to with it.
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
	if v.InUse.Node == node {
		return nil
	}
	return n.mark(annInUse, Mark{node, v.Copy})
}

// Unuse removes in-use, after nothing on the node can write any more.
func (n Names) Unuse(v Volume, node string) *Change {
	if v.InUse.Node != node {
		return nil
	}
	return &Change{Annotations: map[string]any{n.key(annInUse): nil}}
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
	if v.Copied == (Mark{node, copy}) {
		return nil
	}
	return n.mark(annCopied, Mark{node, copy})
}

// Cancel removes begun and copied, before a node gives up a copy. While an affinity is not confirmed, that has to wait.
func (n Names) Cancel(v Volume, node string) *Change {
	if v.Begun.Node != node && v.Copied.Node != node {
		return nil
	}
	return &Change{Annotations: map[string]any{n.key(annBegun): nil, n.key(annCopied): nil}}
}

// Show says that a node has the copy that counts of a released volume, if the list does not. It has opened the copy.
func (n Names) Show(v Volume, node string, uid types.UID) *Change {
	isListed := false
	for _, h := range v.Homes {
		isListed = isListed || h.Name == node && h.UID == uid
	}
	mark := Mark{node, string(uid) + "/" + v.Copy}
	if v.Affinity != nil || isListed || v.Shown == mark || !slices.Contains(v.ReleasedFrom, node) {
		return nil
	}
	return n.mark(annShown, mark)
}

func (n Names) mark(name string, m Mark) *Change {
	return &Change{Annotations: map[string]any{n.key(name): m.String()}}
}
