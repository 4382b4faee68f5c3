// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"capacityv2.internal/test-e2e/driver/store"
	"capacityv2.internal/test-e2e/driver/volume"
)

const (
	// Driver is the name of the CSIDriver.
	Driver = "reference.csi.capacityv2.internal"

	// TopologyKey is the key of the topology: each node is a segment, and its name the
	// value.
	TopologyKey = "topology." + Driver + "/node"

	// minimumBytes is enough for the smallest ext4 file system that is worth it.
	minimumBytes = 1 << 20
	sector       = 512 // A device has whole ones.
)

// Controller is the controller service for the pools of one node.
type Controller struct {
	csi.UnimplementedControllerServer
	Volumes *volume.Node
}

// ControllerGetCapabilities returns what the service can do.
func (c *Controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	response := &csi.ControllerGetCapabilitiesResponse{}
	for _, t := range []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_GET_CAPACITY} {
		response.Capabilities = append(response.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: t}},
		})
	}
	return response, nil
}

// GetCapacity returns what is left of the pools that the parameters name: each of them,
// their sum, and the largest one. On another node than asked for, that is nothing.
func (c *Controller) GetCapacity(ctx context.Context, r *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	if r.GetAccessibleTopology() != nil && !c.isHere(r.GetAccessibleTopology()) ||
		len(r.GetVolumeCapabilities()) > 0 && supported(r.GetVolumeCapabilities()...) != nil {
		return c.capacity(nil), nil
	}
	pools, err := parse(r.GetParameters())
	if err != nil {
		return nil, err
	}
	return c.capacity(c.Volumes.Rooms(ctx, pools)), nil
}

func (c *Controller) isHere(t *csi.Topology) bool {
	node, ok := t.GetSegments()[TopologyKey]
	return ok && node == c.Volumes.Name
}

func (c *Controller) capacity(list []int64) *csi.GetCapacityResponse {
	if len(list) == 0 {
		list = []int64{0} // An empty list means that the driver does not know. No room is a pool of zero.
	}
	var sum int64
	for _, bytes := range list {
		sum += bytes
	}
	return &csi.GetCapacityResponse{AvailableCapacity: sum, MaximumVolumeSize: wrapperspb.Int64(slices.Max(list)), AvailableCapacities: list}
}

// CreateVolume creates a volume on this node.
func (c *Controller) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if err := supported(r.GetVolumeCapabilities()...); err != nil {
		return nil, err
	}
	wanted, err := request(r)
	if err != nil {
		return nil, err
	}
	requisite := r.GetAccessibilityRequirements().GetRequisite()
	if len(requisite) > 0 && !slices.ContainsFunc(requisite, c.isHere) {
		return nil, status.Errorf(codes.ResourceExhausted, "node %s is not among those where the volume is wanted", c.Volumes.Name)
	}
	v, err := c.Volumes.Create(ctx, r.GetName(), wanted, r.GetCapacityRange().GetLimitBytes())
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId: v.Handle, CapacityBytes: v.Bytes, AccessibleTopology: []*csi.Topology{segment(c.Volumes.Name)},
		VolumeContext: map[string]string{volume.PoolsKey: v.Pools}, // what a node has to know that makes a copy
	}}, nil
}

// DeleteVolume deletes a volume, and fails on a node that does not own it.
func (c *Controller) DeleteVolume(ctx context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	return &csi.DeleteVolumeResponse{}, c.Volumes.Delete(ctx, r.GetVolumeId())
}

// ValidateVolumeCapabilities confirms what is supported.
func (c *Controller) ValidateVolumeCapabilities(_ context.Context, r *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if len(r.GetVolumeCapabilities()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "volume capabilities are missing")
	}
	v, err := c.Volumes.Get(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	err = supported(r.GetVolumeCapabilities()...)
	if err == nil && v.Block != (r.GetVolumeCapabilities()[0].GetBlock() != nil) {
		err = status.Errorf(codes.InvalidArgument, "volume mode is Block: %t", v.Block)
	}
	if err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: status.Convert(err).Message()}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: r.GetVolumeContext(), VolumeCapabilities: r.GetVolumeCapabilities(), Parameters: r.GetParameters(),
	}}, nil
}

// parse reads the parameters of a class. Those of external-provisioner are left out.
func parse(parameters map[string]string) (pools string, err error) {
	for key, value := range parameters {
		switch {
		case key == volume.PoolsKey:
			pools = strings.ReplaceAll(value, " ", "")
		case !strings.HasPrefix(key, "csi.storage.k8s.io/"):
			return "", status.Errorf(codes.InvalidArgument, "unknown parameter %q; expected %s", key, volume.PoolsKey)
		}
	}
	return pools, nil
}

// supported returns an error for capabilities that no volume has: use by several nodes,
// both a file system and a device, and file systems other than ext4.
func supported(capabilities ...*csi.VolumeCapability) error {
	if len(capabilities) == 0 {
		return status.Error(codes.InvalidArgument, "volume capabilities are missing")
	}
	for _, c := range capabilities {
		switch {
		case c.GetBlock() == nil && c.GetMount() == nil:
			return status.Error(codes.InvalidArgument, "volume capability is missing")
		case (c.GetBlock() != nil) != (capabilities[0].GetBlock() != nil):
			return status.Error(codes.InvalidArgument, "a volume has either a file system or none")
		case c.GetMount().GetFsType() != "" && c.GetMount().GetFsType() != "ext4":
			return status.Errorf(codes.InvalidArgument, "file system %s is not supported; expected ext4", c.GetMount().GetFsType())
		}
		switch c.GetAccessMode().GetMode() {
		case csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:
		default:
			return status.Errorf(codes.InvalidArgument, "access mode %s is not supported", c.GetAccessMode().GetMode())
		}
	}
	return nil
}

// request returns the volume that a CreateVolume call wants.
func request(r *csi.CreateVolumeRequest) (v store.Copy, err error) {
	if r.GetName() == "" {
		return v, status.Error(codes.InvalidArgument, "name is missing")
	}
	if r.GetVolumeContentSource() != nil {
		return v, status.Error(codes.InvalidArgument, "volumes are empty at first; a source is not supported")
	}
	required, limit := r.GetCapacityRange().GetRequiredBytes(), r.GetCapacityRange().GetLimitBytes()
	v = store.Copy{Bytes: (max(required, minimumBytes) + sector - 1) / sector * sector, Block: r.GetVolumeCapabilities()[0].GetBlock() != nil}
	if required < 0 || limit < 0 || limit > 0 && v.Bytes > limit {
		return v, status.Errorf(codes.OutOfRange, "no volume has at least %d and at most %d bytes; the smallest has %d", required, limit, minimumBytes)
	}
	v.Pools, err = parse(r.GetParameters())
	return v, err
}

func segment(node string) *csi.Topology {
	return &csi.Topology{Segments: map[string]string{TopologyKey: node}}
}
