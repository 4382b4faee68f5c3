// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"capacityv2.internal/test-e2e/driver/store"
	"capacityv2.internal/test-e2e/driver/volume"
)

const (
	// Driver is the name of the CSIDriver.
	Driver = "reference.csi.capacityv2.internal"

	// TopologyKey is the key of the topology: each node is a segment, and its name the
	// value.
	TopologyKey = "topology." + Driver + "/node"

	// poolsParameter has the names of the pools that a class uses, separated by commas.
	poolsParameter = volume.PoolsKey

	// minimumBytes is enough for the smallest ext4 file system that is worth it.
	minimumBytes = 1 << 20
	sector       = 512 // A device has whole ones.
)

// parse reads the parameters of a class. Those of external-provisioner are left out.
func parse(parameters map[string]string) (pools string, err error) {
	for key, value := range parameters {
		switch {
		case key == poolsParameter:
			pools = strings.ReplaceAll(value, " ", "")
		case !strings.HasPrefix(key, "csi.storage.k8s.io/"):
			return "", status.Errorf(codes.InvalidArgument, "unknown parameter %q; expected %s", key, poolsParameter)
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
