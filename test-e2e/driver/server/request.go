package server

import (
	"strconv"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"capacityv2.internal/test-e2e/driver/pool"
	"capacityv2.internal/test-e2e/driver/volume"
)

const (
	// TopologyKey is the key of the topology: each node is a segment, and its name the
	// value.
	TopologyKey = "topology.reference.csi.capacityv2.internal/node"

	// poolsParameter has the names of the pools that a class uses, separated by commas.
	poolsParameter = "pools"
	// copiesParameter has the number of nodes that keep a copy of each volume.
	copiesParameter = "copies"

	defaultBytes = 1 << 30
	// minimumBytes is enough for the smallest ext4 file system that is worth it.
	minimumBytes = 1 << 20
)

// parse reads the parameters of a class. Those of external-provisioner are left out.
func parse(parameters map[string]string) (pools []string, copies int, err error) {
	copies = 1
	for key, value := range parameters {
		switch {
		case key == poolsParameter:
			for name := range strings.SplitSeq(value, ",") {
				pools = append(pools, strings.TrimSpace(name))
			}
		case key == copiesParameter:
			if copies, err = strconv.Atoi(value); err != nil || copies < 1 {
				return nil, 0, status.Errorf(codes.InvalidArgument, "parameter %s: %q is not a positive number", key, value)
			}
		case !strings.HasPrefix(key, "csi.storage.k8s.io/"):
			return nil, 0, status.Errorf(codes.InvalidArgument, "unknown parameter %q; expected %s or %s", key, poolsParameter, copiesParameter)
		}
	}
	return pools, copies, nil
}

// sizes returns the size that a volume gets, and how large it may be at most (0: any).
func sizes(r *csi.CapacityRange) (bytes, limit int64, err error) {
	bytes, limit = r.GetRequiredBytes(), r.GetLimitBytes()
	if bytes == 0 {
		bytes = defaultBytes
		if limit > 0 {
			bytes = min(bytes, limit)
		}
	}
	bytes = max(bytes, minimumBytes)
	if r.GetRequiredBytes() < 0 || limit < 0 || limit > 0 && bytes > limit {
		return 0, 0, status.Errorf(codes.OutOfRange, "no volume has at least %d and at most %d bytes; the smallest has %d", r.GetRequiredBytes(), limit, minimumBytes)
	}
	return bytes, limit, nil
}

// supported returns an error for capabilities that no volume has: raw block, and use by
// several nodes.
func supported(capabilities ...*csi.VolumeCapability) error {
	if len(capabilities) == 0 {
		return status.Error(codes.InvalidArgument, "volume capabilities are missing")
	}
	for _, c := range capabilities {
		if c == nil {
			return status.Error(codes.InvalidArgument, "volume capability is missing")
		}
		if c.GetMount() == nil {
			return status.Error(codes.InvalidArgument, "only volumes with file systems are supported")
		}
		switch c.GetAccessMode().GetMode() {
		case csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:
		default:
			return status.Errorf(codes.InvalidArgument, "access mode %s is not supported", c.GetAccessMode().GetMode())
		}
	}
	return nil
}

// request translates a CreateVolume call.
func request(r *csi.CreateVolumeRequest) (volume.Request, error) {
	if r.GetName() == "" {
		return volume.Request{}, status.Error(codes.InvalidArgument, "name is missing")
	}
	if err := supported(r.GetVolumeCapabilities()...); err != nil {
		return volume.Request{}, err
	}
	if r.GetVolumeContentSource() != nil {
		return volume.Request{}, status.Error(codes.InvalidArgument, "volumes are empty at first; a source is not supported")
	}
	pools, copies, err := parse(r.GetParameters())
	if err != nil {
		return volume.Request{}, err
	}
	bytes, limit, err := sizes(r.GetCapacityRange())
	if err != nil {
		return volume.Request{}, err
	}
	return volume.Request{Name: r.GetName(), Bytes: bytes, LimitBytes: limit, Pools: pools, Copies: copies}, nil
}

func segment(node string) *csi.Topology {
	return &csi.Topology{Segments: map[string]string{TopologyKey: node}}
}

func describe(v pool.Volume) *csi.Volume {
	described := &csi.Volume{VolumeId: v.ID, CapacityBytes: v.CapacityBytes}
	for _, node := range v.Copies {
		described.AccessibleTopology = append(described.AccessibleTopology, segment(node))
	}
	return described
}
