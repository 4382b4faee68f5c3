package rebuild

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
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
	if pv, err = c.confirm(ctx, pv); err != nil {
		return ignoreElsewhere(err)
	}
	if pv.Spec.NodeAffinity == nil {
		return ignoreElsewhere(c.putBack(ctx, pv))
	}
	homes, err := c.homesAmong(c.named(pv))
	if err != nil || len(c.named(pv)) == 0 || claim.Annotations[storagehelpers.AnnSelectedNode] == "" {
		return err // Without a selected node, it does not move.
	}
	if _, usable, err := c.present(homes); err != nil || usable {
		return err
	}
	return c.release(ctx, pv, storagehelpers.FormatHomeNodes(homes), "released")
}

// putBack sets the node affinity to the home nodes, if one of them can be used.
func (c *Controller) putBack(ctx context.Context, pv *corev1.PersistentVolume) error {
	homes, _ := storagehelpers.HomeNodesOf(pv)
	present, usable, err := c.present(homes)
	if err != nil || !usable {
		return err
	}
	return c.set(ctx, pv, present, "returned")
}

// homesAmong returns the nodes of names. One that does not exist has no UID.
func (c *Controller) homesAmong(names []string) (homes []storagehelpers.HomeNode, err error) {
	for _, name := range names {
		node, err := c.nodes.Get(name)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		if err == nil {
			homes = append(homes, storagehelpers.HomeNode{Name: name, UID: node.UID})
		}
	}
	return homes, nil
}

// present returns which home nodes exist, as the same objects, and whether one of them can
// be used.
func (c *Controller) present(homes []storagehelpers.HomeNode) (names []string, usable bool, err error) {
	for _, home := range homes {
		node, err := c.nodes.Get(home.Name)
		if apierrors.IsNotFound(err) || err == nil && node.UID != home.UID {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		names = append(names, home.Name)
		usable = usable || isUsable(node)
	}
	return names, usable, nil
}

// isUsable does not look at whether the node is ready: one that is not may still write.
func isUsable(node *corev1.Node) bool { return !node.Spec.Unschedulable && !isOutOfService(node) }

func isOutOfService(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == corev1.TaintNodeOutOfService })
}

// selectedNode returns where the claim of a volume was sent last. It does not use the
// cache, which may be old.
func (c *Controller) selectedNode(ctx context.Context, pv *corev1.PersistentVolume) (string, error) {
	ref := pv.Spec.ClaimRef
	if ref == nil {
		return "", status.Errorf(codes.Aborted, "PersistentVolume %s is not bound", pv.Name)
	}
	claim, err := c.client.CoreV1().PersistentVolumeClaims(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && claim.UID != ref.UID {
		return "", status.Errorf(codes.Aborted, "the claim of PersistentVolume %s is gone", pv.Name)
	}
	if err != nil {
		return "", err
	}
	return claim.Annotations[storagehelpers.AnnSelectedNode], nil
}

// admits tells whether nodes have the one where the claim of a volume was sent last.
func (c *Controller) admits(ctx context.Context, pv *corev1.PersistentVolume, nodes []string) (bool, error) {
	selected, err := c.selectedNode(ctx, pv)
	return slices.Contains(nodes, selected), err
}

func elsewhere(pv *corev1.PersistentVolume) error {
	return status.Errorf(codes.Aborted, "the claim of volume %s was sent elsewhere", pv.Spec.CSI.VolumeHandle)
}

// ignoreElsewhere ignores what another change of the claim will mend.
func ignoreElsewhere(err error) error {
	if status.Code(err) == codes.Aborted {
		return nil
	}
	return err
}
