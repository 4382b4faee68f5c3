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
)

// ControllerPublishVolume names a node in the PersistentVolume of a volume: a node that
// has a copy, or has rebuilt the volume. It fails with FailedPrecondition if the volume
// is meant to be elsewhere, and with Unavailable if that cannot be told now.
func (c *Controller) ControllerPublishVolume(ctx context.Context, r *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	found, err := c.handles.ByIndex(byHandle, r.GetVolumeId())
	if err != nil || len(found) != 1 {
		return nil, status.Errorf(codes.Unavailable, "%d PersistentVolumes have volume %s; expected 1", len(found), r.GetVolumeId())
	}
	name := found[0].(*corev1.PersistentVolume).Name
	c.calls.LockKey(name)
	defer func() { _ = c.calls.UnlockKey(name) }()

	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		pv, err := c.client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return c.publish(ctx, pv, r.GetNodeId())
	})
	if _, ok := status.FromError(err); !ok {
		err = status.Error(codes.Unavailable, err.Error())
	}
	if err != nil {
		return nil, err
	}
	return &csi.ControllerPublishVolumeResponse{}, nil
}

func (c *Controller) publish(ctx context.Context, pv *corev1.PersistentVolume, node string) error {
	p := c.placementOf(pv)
	switch {
	case slices.Contains(p.named, node):
		if p.sentTo != nil { // It is home, wherever the claim was sent.
			_, err := c.write(ctx, pv, placement{named: p.named, copies: p.copies}, "")
			return err
		}
		return nil
	case len(p.named) > 0:
		return status.Errorf(codes.FailedPrecondition, "volume %s is on %v, not on %s", pv.Spec.CSI.VolumeHandle, p.named, node)
	case !slices.Contains(p.copies, node):
		_, err := c.write(ctx, pv, placement{named: []string{node}, copies: []string{node}}, "rebuilt")
		return err
	}
	usable, err := c.usable(p.copies)
	if err != nil {
		return err
	}
	if !slices.Contains(usable, node) {
		return status.Errorf(codes.FailedPrecondition, "node %s cannot be used, so volume %s may be rebuilt elsewhere", node, pv.Spec.CSI.VolumeHandle)
	}
	_, err = c.write(ctx, pv, placement{named: usable, copies: p.copies}, "returned")
	return err
}

// ControllerUnpublishVolume returns no error if a node cannot write any more to what it
// has staged: it has been put out of service or deleted, which nobody does to a node that
// runs.
func (c *Controller) ControllerUnpublishVolume(ctx context.Context, r *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	node, err := c.client.CoreV1().Nodes().Get(ctx, r.GetNodeId(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && isOutOfService(node) {
		return &csi.ControllerUnpublishVolumeResponse{}, nil
	}
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return nil, status.Errorf(codes.FailedPrecondition, "node %s may write to volume %s; it is neither out of service nor deleted", r.GetNodeId(), r.GetVolumeId())
}
