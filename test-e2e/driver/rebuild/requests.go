package rebuild

import (
	"context"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"capacityv2.internal/test-e2e/driver/volume"
)

// ControllerPublishVolume answers what a node asks about a volume (volume.Question). It
// fails with Aborted if the volume is, or was sent, elsewhere, and with Unavailable if that
// cannot be told now.
func (c *Controller) ControllerPublishVolume(ctx context.Context, r *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	found, err := c.handles.ByIndex(byHandle, r.GetVolumeId())
	if err != nil || len(found) != 1 {
		return nil, status.Errorf(codes.Unavailable, "%d PersistentVolumes have volume %s; expected 1", len(found), r.GetVolumeId())
	}
	cached := found[0].(*corev1.PersistentVolume)
	name, question := cached.Name, volume.Question(r.GetVolumeContext()[volume.QuestionKey])
	if question == volume.Show && cached.Spec.NodeAffinity != nil {
		return &csi.ControllerPublishVolumeResponse{}, nil // as ever
	}
	c.calls.LockKey(name)
	defer func() { _ = c.calls.UnlockKey(name) }()

	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		pv, err := c.client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			pv, err = c.confirm(ctx, pv)
		}
		if err != nil {
			return err
		}
		return c.answer(ctx, pv, question, r.GetNodeId())
	})
	if _, ok := status.FromError(err); !ok {
		err = status.Error(codes.Unavailable, err.Error())
	}
	if err != nil {
		return nil, err
	}
	return &csi.ControllerPublishVolumeResponse{}, nil
}

func (c *Controller) answer(ctx context.Context, pv *corev1.PersistentVolume, question volume.Question, node string) error {
	named := c.named(pv)
	isNamed := slices.Contains(named, node)
	switch {
	case question == volume.Drop && isNamed:
		return status.Errorf(codes.FailedPrecondition, "volume %s is on %s", pv.Spec.CSI.VolumeHandle, node)
	case question == volume.Drop && pv.Annotations[annBegun] == node && len(named) == 0:
		_, err := c.patch(ctx, pv, "", map[string]any{annBegun: nil}, nil)
		return err
	case question == volume.Drop, isNamed, question == volume.Show && len(named) > 0:
		return nil
	case len(named) > 0:
		return status.Errorf(codes.Aborted, "volume %s is on %v, not on %s", pv.Spec.CSI.VolumeHandle, named, node)
	}
	homes, _ := storagehelpers.HomeNodesOf(pv)
	if question == volume.Show {
		return c.show(ctx, pv, homes, node)
	}
	return c.request(ctx, pv, homes, question, node)
}

// request lets a node have a released volume that it asks for: the one where the claim was
// sent, or another one with the data if nothing was begun there. A stale request gets
// Aborted.
func (c *Controller) request(ctx context.Context, pv *corev1.PersistentVolume, homes []storagehelpers.HomeNode, question volume.Question, node string) error {
	present, usable, err := c.present(homes)
	if err != nil {
		return err
	}
	selected, err := c.selectedNode(ctx, pv)
	if err != nil {
		return err
	}
	isHome, begun := slices.Contains(present, node), pv.Annotations[annBegun]
	switch {
	case selected != node && (!isHome || begun != "" && begun == selected):
		return elsewhere(pv)
	case question == volume.Begin && (isHome || begun == node):
		return nil
	case question == volume.Begin:
		_, err := c.patch(ctx, pv, "", map[string]any{annBegun: node}, nil)
		return err
	case !isHome:
		return c.set(ctx, pv, []string{node}, "rebuilt")
	case usable && slices.Contains(present, selected):
		return c.set(ctx, pv, present, "returned")
	}
	return nil // Its pod tolerates the cordon, or the claim was sent elsewhere.
}

// show adds a node that has come back to the home nodes: it has a complete copy.
func (c *Controller) show(ctx context.Context, pv *corev1.PersistentVolume, homes []storagehelpers.HomeNode, node string) error {
	shown, err := c.homesAmong([]string{node})
	if err != nil || len(shown) == 0 || slices.Contains(homes, shown[0]) {
		return err
	}
	homes = slices.DeleteFunc(homes, func(h storagehelpers.HomeNode) bool { return h.Name == node })
	_, err = c.patch(ctx, pv, "", map[string]any{storagehelpers.AnnHomeNodes: storagehelpers.FormatHomeNodes(append(homes, shown...))}, nil)
	return err
}

// ControllerUnpublishVolume returns no error if a node cannot write any more to what it
// has staged: somebody has put it out of service, which is the promise that it is off. A
// node whose object was deleted may run.
func (c *Controller) ControllerUnpublishVolume(ctx context.Context, r *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	node, err := c.client.CoreV1().Nodes().Get(ctx, r.GetNodeId(), metav1.GetOptions{})
	if err == nil && isOutOfService(node) {
		return &csi.ControllerUnpublishVolumeResponse{}, nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return nil, status.Errorf(codes.FailedPrecondition, "node %s may write to volume %s; it is not out of service", r.GetNodeId(), r.GetVolumeId())
}
