package centraldriver

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"capacityv2.internal/test-integration/history"
)

// Driver has pools on each node. A volume takes the smallest pool in which it fits, and counts
// from CreateVolume on.
type Driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer

	// Name is that of the CSIDriver, TopologyKey the label with the name of a node.
	Name, TopologyKey string
	// Maximum has GetCapacity say how large a volume can be. It leaves that out otherwise.
	Maximum bool
	// History gets the pools of each node, and each volume that is created, refused or deleted. It
	// names pools "0", "1", in the order of SetPools. What BeforeCreate ends is not in it. It may be nil.
	History *history.Recorder
	// BeforeCreate and BeforeCapacity are called before CreateVolume and GetCapacity do anything.
	// BeforeAnswer is called when the answer of GetCapacity is known and does not change any more. A call
	// waits for them, and ends with their error. Several calls may be in one at once. Each may be nil.
	BeforeCreate, BeforeCapacity, BeforeAnswer func(ctx context.Context) error

	calls   atomic.Int64 // of GetCapacity
	mutex   sync.Mutex
	free    map[string][]int64 // by node, in bytes
	volumes map[string]volume  // by name
	failed  map[string]int     // by node
}

type volume struct {
	node    string
	pool    int
	bytes   int64
	created time.Time
}

// SetPools sets what is free on a node, in bytes, and forgets what has failed there. With a
// history, the node must not have volumes.
func (d *Driver) SetPools(node string, free ...int64) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.free == nil {
		d.free, d.volumes, d.failed = map[string][]int64{}, map[string]volume{}, map[string]int{}
	}
	d.free[node] = free
	delete(d.failed, node)
	pools := map[string]int64{}
	for pool, bytes := range free {
		pools[strconv.Itoa(pool)] = bytes
	}
	d.History.Begin(history.Operation{Node: node, Kind: history.Start, Pools: pools})(history.OK, "")
}

// Free returns what is free on a node, in bytes.
func (d *Driver) Free(node string) []int64 {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return slices.Clone(d.free[node])
}

// Calls returns how often GetCapacity was called.
func (d *Driver) Calls() int { return int(d.calls.Load()) }

// Failed returns how many volumes were asked for where there was no room: on these nodes, or on
// all.
func (d *Driver) Failed(nodes ...string) int {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	sum := 0
	for node, n := range d.failed {
		if len(nodes) == 0 || slices.Contains(nodes, node) {
			sum += n
		}
	}
	return sum
}

// Created returns when each volume was created, by its name.
func (d *Driver) Created() map[string]time.Time {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	created := map[string]time.Time{}
	for name, v := range d.volumes {
		created[name] = v.created
	}
	return created
}

func (d *Driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (d *Driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.Name, VendorVersion: "1"}, nil
}

func (d *Driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	r := &csi.GetPluginCapabilitiesResponse{}
	for _, t := range []csi.PluginCapability_Service_Type{
		csi.PluginCapability_Service_CONTROLLER_SERVICE, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS,
	} {
		r.Capabilities = append(r.Capabilities, &csi.PluginCapability{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: t}}})
	}
	return r, nil
}

func (d *Driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	r := &csi.ControllerGetCapabilitiesResponse{}
	for _, t := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_GET_CAPACITY,
	} {
		r.Capabilities = append(r.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: t}}})
	}
	return r, nil
}

// call calls a hook of the driver, which may be nil.
func call(ctx context.Context, hook func(context.Context) error) error {
	if hook == nil {
		return nil
	}
	return hook(ctx)
}

func (d *Driver) GetCapacity(ctx context.Context, r *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	d.calls.Add(1)
	if err := call(ctx, d.BeforeCapacity); err != nil {
		return nil, err
	}
	free := d.Free(r.GetAccessibleTopology().GetSegments()[d.TopologyKey])
	if len(free) == 0 {
		free = []int64{0}
	}
	response := &csi.GetCapacityResponse{AvailableCapacities: free}
	for _, pool := range free {
		response.AvailableCapacity += pool
	}
	if d.Maximum {
		response.MaximumVolumeSize = wrapperspb.Int64(slices.Max(free))
	}
	if err := call(ctx, d.BeforeAnswer); err != nil {
		return nil, err
	}
	return response, nil
}

func (d *Driver) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if err := call(ctx, d.BeforeCreate); err != nil {
		return nil, err
	}
	topologies := slices.Concat(r.GetAccessibilityRequirements().GetPreferred(), r.GetAccessibilityRequirements().GetRequisite())
	if len(topologies) == 0 {
		return nil, status.Error(codes.InvalidArgument, "no topology")
	}
	bytes := r.GetCapacityRange().GetRequiredBytes()
	d.mutex.Lock()
	defer d.mutex.Unlock()
	v, exists := d.volumes[r.Name]
	if !exists {
		v = volume{node: topologies[0].Segments[d.TopologyKey], pool: -1, bytes: bytes, created: time.Now()}
	} else if err := d.check(v, r); err != nil {
		return nil, err
	}
	end := d.History.Begin(history.Operation{Node: v.node, Kind: history.Create, Volume: r.Name, Bytes: v.bytes})
	if !exists {
		free := d.free[v.node]
		for pool := range free {
			if free[pool] >= bytes && (v.pool < 0 || free[pool] < free[v.pool]) {
				v.pool = pool
			}
		}
		if v.pool < 0 {
			d.failed[v.node]++
			end(history.Refused, "")
			return nil, status.Errorf(codes.ResourceExhausted, "%d bytes are free on %s", free, v.node)
		}
		free[v.pool] -= bytes
		d.volumes[r.Name] = v
	}
	end(history.OK, strconv.Itoa(v.pool))
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId: r.Name, CapacityBytes: v.bytes, AccessibleTopology: []*csi.Topology{{Segments: map[string]string{d.TopologyKey: v.node}}},
	}}, nil
}

// check returns an error if a volume is not what a request for its name asks for.
func (d *Driver) check(v volume, r *csi.CreateVolumeRequest) error {
	requisite, size := r.GetAccessibilityRequirements().GetRequisite(), r.GetCapacityRange()
	isThere := func(t *csi.Topology) bool { return t.GetSegments()[d.TopologyKey] == v.node }
	switch {
	case len(requisite) > 0 && !slices.ContainsFunc(requisite, isThere):
		return status.Errorf(codes.AlreadyExists, "volume %s is on %s, which is none of the requisite topologies", r.Name, v.node)
	case v.bytes < size.GetRequiredBytes() || size.GetLimitBytes() > 0 && v.bytes > size.GetLimitBytes():
		return status.Errorf(codes.AlreadyExists, "volume %s has %d bytes, want %d to %d", r.Name, v.bytes, size.GetRequiredBytes(), size.GetLimitBytes())
	}
	return nil
}

func (d *Driver) DeleteVolume(_ context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if v, ok := d.volumes[r.VolumeId]; ok {
		end := d.History.Begin(history.Operation{Node: v.node, Kind: history.Delete, Volume: r.VolumeId})
		d.free[v.node][v.pool] += v.bytes
		delete(d.volumes, r.VolumeId)
		end(history.OK, "")
	}
	return &csi.DeleteVolumeResponse{}, nil
}
