package server

import (
	"context"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/mount-utils"

	"capacityv2.internal/test-e2e/driver/pool"
	"capacityv2.internal/test-e2e/driver/volume"
)

// Node is the node service.
type Node struct {
	csi.UnimplementedNodeServer
	Volumes *volume.Manager
	Mounter mount.Interface
}

// NodeGetInfo returns the node and its topology.
func (n *Node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	node := n.Volumes.Store.Node
	return &csi.NodeGetInfoResponse{NodeId: node, AccessibleTopology: segment(node)}, nil
}

// NodeGetCapabilities returns what the service can do.
func (n *Node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	response := &csi.NodeGetCapabilitiesResponse{}
	for _, t := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
	} {
		response.Capabilities = append(response.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: t}},
		})
	}
	return response, nil
}

// NodeStageVolume mounts a volume at the staging path. If the volume is elsewhere, it is
// rebuilt here first.
func (n *Node) NodeStageVolume(ctx context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	path := r.GetStagingTargetPath()
	if err := required(r.GetVolumeId(), "staging target path", path); err != nil {
		return nil, err
	}
	if err := supported(r.GetVolumeCapability()); err != nil {
		return nil, err
	}
	if _, err := n.Volumes.Acquire(ctx, r.GetVolumeId(), path, r.GetVolumeCapability().GetMount().GetMountFlags()...); err != nil {
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
	err := n.Volumes.Release(ctx, r.GetVolumeId(), func() error {
		mounted, err := n.Volumes.Backing.IsMounted(path)
		if err == nil && mounted {
			err = n.Mounter.Unmount(path)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// NodePublishVolume binds the staging path to the path of a pod.
func (n *Node) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	path := r.GetTargetPath()
	if err := required(r.GetVolumeId(), "target path", path); err != nil {
		return nil, err
	}
	if err := supported(r.GetVolumeCapability()); err != nil {
		return nil, err
	}
	v, err := n.Volumes.Get(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if v.StagedAt == "" || v.StagedAt != r.GetStagingTargetPath() || v.FencedFor != "" {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is not staged at %q", v.ID, r.GetStagingTargetPath())
	}
	mounted, err := n.Volumes.Backing.IsMounted(path)
	if err == nil && !mounted {
		options := []string{"bind"}
		if r.GetReadonly() {
			options = append(options, "ro")
		}
		if err = os.MkdirAll(path, 0o750); err == nil {
			err = n.Mounter.Mount(v.StagedAt, path, "", options)
		}
	}
	if err != nil {
		return nil, status.Errorf(codes.Internal, "mount volume %s: %v", v.ID, err)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// NodeUnpublishVolume unmounts the path of a pod, and removes it.
func (n *Node) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := required(r.GetVolumeId(), "target path", r.GetTargetPath()); err != nil {
		return nil, err
	}
	if err := mount.CleanupMountPoint(r.GetTargetPath(), n.Mounter, true); err != nil {
		return nil, status.Errorf(codes.Internal, "unmount volume %s: %v", r.GetVolumeId(), err)
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// NodeGetVolumeStats returns the bytes of a volume.
func (n *Node) NodeGetVolumeStats(_ context.Context, r *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	v, err := n.mounted(r.GetVolumeId(), r.GetVolumePath())
	if err != nil {
		return nil, err
	}
	used, available, err := n.Volumes.Backing.Usage(r.GetVolumePath(), v.CapacityBytes)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{{
		Unit: csi.VolumeUsage_BYTES, Total: v.CapacityBytes, Used: used, Available: available,
	}}}, nil
}

// NodeExpandVolume makes the file system as large as the volume.
func (n *Node) NodeExpandVolume(_ context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	v, err := n.mounted(r.GetVolumeId(), r.GetVolumePath())
	if err != nil {
		return nil, err
	}
	if err := n.Volumes.Backing.Grow(r.GetVolumePath()); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: v.CapacityBytes}, nil
}

// mounted returns a volume that is mounted at a path.
func (n *Node) mounted(id, path string) (pool.Volume, error) {
	if err := required(id, "volume path", path); err != nil {
		return pool.Volume{}, err
	}
	v, err := n.Volumes.Get(id)
	if err != nil {
		return v, err
	}
	mounted, err := n.Volumes.Backing.IsMounted(path)
	if err != nil {
		return v, status.Error(codes.Internal, err.Error())
	}
	if !mounted {
		return v, status.Errorf(codes.NotFound, "volume %s is not mounted at %s", id, path)
	}
	return v, nil
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
