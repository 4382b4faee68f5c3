package rebuild

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// place makes the node affinity of a volume fit to which nodes can be used.
func (c *Controller) place(ctx context.Context, name string) error {
	c.calls.LockKey(name)
	defer func() { _ = c.calls.UnlockKey(name) }()

	pv, err := c.volumes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || !c.isOurs(pv) || pv.DeletionTimestamp != nil || pv.Spec.ClaimRef == nil {
		return err
	}
	claim, err := c.claims.PersistentVolumeClaims(pv.Spec.ClaimRef.Namespace).Get(pv.Spec.ClaimRef.Name)
	if apierrors.IsNotFound(err) || err == nil && claim.UID != pv.Spec.ClaimRef.UID {
		return nil // It will be deleted, by the node that has it.
	}
	if err != nil {
		return err
	}
	p := c.placementOf(pv)
	if len(p.copies) == 0 {
		return nil // Nobody knows where it is. It does not move then.
	}
	usable, err := c.usable(p.copies)
	if err != nil {
		return err
	}
	switch {
	case len(usable) == 0:
		return c.unset(ctx, pv, p, claim)
	case p.sentTo != nil:
		return c.putBack(ctx, pv, p, claim, usable)
	case slices.Equal(p.named, usable):
		return nil
	}
	reason := "narrowed"
	if len(usable) == len(p.copies) {
		reason = "returned"
	}
	_, err = c.write(ctx, pv, placement{named: usable, copies: p.copies}, reason)
	return err
}

// unset releases a volume, and remembers where its claim was sent last.
func (c *Controller) unset(ctx context.Context, pv *corev1.PersistentVolume, p placement, claim *corev1.PersistentVolumeClaim) error {
	if len(p.named) == 0 && p.sentTo != nil {
		return nil
	}
	sentTo := p.sentTo
	if sentTo == nil {
		selected := selectedNode(claim)
		sentTo = &selected
	}
	_, err := c.write(ctx, pv, placement{copies: p.copies, sentTo: sentTo}, "unset")
	return err
}

// putBack says again where a volume is that has not moved, unless its claim was sent
// elsewhere meanwhile. The scheduler writes the claim first and reads the volume then,
// so this is the other way round: one of both notices. What is remembered stays until
// that is known, so that another controller can go on.
func (c *Controller) putBack(ctx context.Context, pv *corev1.PersistentVolume, p placement, claim *corev1.PersistentVolumeClaim, usable []string) (err error) {
	released := placement{copies: p.copies, sentTo: p.sentTo}
	if selectedNode(claim) != *p.sentTo {
		if len(p.named) > 0 {
			_, err = c.write(ctx, pv, released, "taken back")
		}
		return err
	}
	if !slices.Equal(p.named, usable) {
		pv, err = c.write(ctx, pv, placement{named: usable, copies: p.copies, sentTo: p.sentTo}, "returned")
		if err != nil {
			return err
		}
	}
	claim, err = c.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read claim again: %w", err)
	}
	if selectedNode(claim) != *p.sentTo {
		_, err = c.write(ctx, pv, released, "taken back")
		return err
	}
	_, err = c.write(ctx, pv, placement{named: usable, copies: p.copies}, "")
	return err
}

func (c *Controller) usable(names []string) ([]string, error) {
	var usable []string
	for _, name := range names {
		node, err := c.nodes.Get(name)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		if err == nil && isUsable(node) {
			usable = append(usable, name)
		}
	}
	return usable, nil
}

// isUsable does not look at whether the node is ready: one that is not may still write.
func isUsable(node *corev1.Node) bool { return !node.Spec.Unschedulable && !isOutOfService(node) }

func isOutOfService(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == corev1.TaintNodeOutOfService })
}
