// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"capacityv2.internal/test-e2e/driver/volume"
)

// Node is the node service.
type Node struct {
	csi.UnimplementedNodeServer
	Volumes *volume.Node
}

// NodeGetInfo returns the node and its topology.
func (n *Node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	node := n.Volumes.Name
	return &csi.NodeGetInfoResponse{NodeId: node, AccessibleTopology: segment(node)}, nil
}

// NodeGetCapabilities returns what the service can do.
func (n *Node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{Capabilities: []*csi.NodeServiceCapability{{
		Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME}},
	}}}, nil
}

// NodeStageVolume mounts a volume at the staging path, or a device in it. If the data is
// elsewhere, it is copied first.
func (n *Node) NodeStageVolume(ctx context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	path := r.GetStagingTargetPath()
	if err := required(r.GetVolumeId(), "staging target path", path); err != nil {
		return nil, err
	}
	if err := supported(r.GetVolumeCapability()); err != nil {
		return nil, err
	}
	if err := n.Volumes.Stage(ctx, r.GetVolumeId(), path, r.GetVolumeCapability().GetMount().GetMountFlags()...); err != nil {
		return nil, err
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

// NodeUnstageVolume unmounts the staging path, which is the kubelet's to remove. After
// that, nothing goes on, and another node can have the volume.
func (n *Node) NodeUnstageVolume(ctx context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	path := r.GetStagingTargetPath()
	if err := required(r.GetVolumeId(), "staging target path", path); err != nil {
		return nil, err
	}
	if err := n.Volumes.Unstage(ctx, r.GetVolumeId(), path); err != nil {
		return nil, err
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// NodePublishVolume binds the staging path to the path of a pod.
func (n *Node) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	path := r.GetTargetPath()
	if err := required(r.GetVolumeId(), "target path", path); err != nil {
		return nil, err
	}
	if err := supported(r.GetVolumeCapability()); err != nil {
		return nil, err
	}
	if err := n.Volumes.Publish(ctx, r.GetVolumeId(), r.GetStagingTargetPath(), path, r.GetVolumeCapability().GetBlock() != nil, r.GetReadonly()); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// NodeUnpublishVolume unmounts the path of a pod, and removes it.
func (n *Node) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := required(r.GetVolumeId(), "target path", r.GetTargetPath()); err != nil {
		return nil, err
	}
	if err := n.Volumes.Unpublish(r.GetVolumeId(), r.GetTargetPath()); err != nil {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

func required(id, name, path string) error {
	if id == "" {
		return missingID()
	}
	if path == "" {
		return status.Errorf(codes.InvalidArgument, "%s is missing", name)
	}
	return nil
}
