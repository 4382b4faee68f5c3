// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

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

// NodeStageVolume mounts a volume below the staging path. If the data is elsewhere, it is copied first.
func (n *Node) NodeStageVolume(ctx context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	return &csi.NodeStageVolumeResponse{}, n.Volumes.Stage(ctx, r.GetVolumeId(), r.GetStagingTargetPath(), r.GetVolumeCapability().GetMount().GetMountFlags()...)
}

// NodeUnstageVolume unmounts what is below the staging path, which is the kubelet's to remove. After that, nothing goes on,
// and another node can have the volume.
func (n *Node) NodeUnstageVolume(ctx context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	return &csi.NodeUnstageVolumeResponse{}, n.Volumes.Unstage(ctx, r.GetVolumeId(), r.GetStagingTargetPath())
}

// NodePublishVolume binds what is staged to the path of a pod.
func (n *Node) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	isBlock := r.GetVolumeCapability().GetBlock() != nil
	return &csi.NodePublishVolumeResponse{}, n.Volumes.Publish(ctx, r.GetVolumeId(), r.GetStagingTargetPath(), r.GetTargetPath(), isBlock, r.GetReadonly())
}

// NodeUnpublishVolume unmounts the path of a pod, and removes it.
func (n *Node) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	return &csi.NodeUnpublishVolumeResponse{}, n.Volumes.Unpublish(r.GetVolumeId(), r.GetTargetPath())
}
