package server

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
)

// Placement asks the controller half over gRPC. The calls are those that
// external-attacher would make if the driver needed attachment:
// ControllerUnpublishVolume for the node that must not write any more, and
// ControllerPublishVolume for the one where the volume is.
type Placement struct{ client csi.ControllerClient }

// NewPlacement returns one for a connection to the controller half.
func NewPlacement(connection grpc.ClientConnInterface) *Placement {
	return &Placement{csi.NewControllerClient(connection)}
}

// Fence returns no error if a node is off.
func (p *Placement) Fence(ctx context.Context, volume, node string) error {
	_, err := p.client.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: volume, NodeId: node})
	return err
}

// Place has the PersistentVolume of a volume name a node.
func (p *Placement) Place(ctx context.Context, volume, node string) error {
	_, err := p.client.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: volume, NodeId: node})
	return err
}
