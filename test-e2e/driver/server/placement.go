package server

import (
	"context"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"capacityv2.internal/test-e2e/driver/volume"
)

// timeout is for the API server, which the controller half asks.
const timeout = 15 * time.Second

// Placement asks the controller half over gRPC, with calls of CSI that mean about the same:
// ControllerUnpublishVolume for the node that must not write any more, and
// ControllerPublishVolume for the one where the volume is or will be.
type Placement struct{ client csi.ControllerClient }

// NewPlacement returns one for a connection to the controller half.
func NewPlacement(connection grpc.ClientConnInterface) *Placement {
	return &Placement{csi.NewControllerClient(connection)}
}

// Fence returns no error if a node is off.
func (p *Placement) Fence(ctx context.Context, volume, node string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := p.client.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: volume, NodeId: node})
	return err
}

// Ask returns no error if a node may do what it asks for.
func (p *Placement) Ask(ctx context.Context, question volume.Question, id, node string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := p.client.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{
		VolumeId: id, NodeId: node, VolumeContext: map[string]string{volume.QuestionKey: string(question)},
	})
	return err
}
