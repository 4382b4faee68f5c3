package central

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/history"
)

const (
	driverName = "central.example.com"
	onlyPool   = "pool"
)

// driver has one pool on each node. A volume counts from CreateVolume on.
type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer

	mutex   sync.Mutex
	free    map[string]int64 // by node, in bytes
	created map[string]time.Time
	calls   int
	// failed is how many volumes were asked for where there was no room.
	failed int
	// history has each of them, and what came out.
	history history.Recorder
	// answers is where answers of GetCapacity pass, which are not changed any more.
	answers *point
	// failures is how many calls of CreateVolume are still to fail.
	failures int
	// capacityFault, if not nil, is called before GetCapacity answers.
	capacityFault func(call int) error
}

func newDriver() *driver {
	return &driver{free: map[string]int64{}, created: map[string]time.Time{}, answers: newPoint()}
}

// start serves the driver on a socket, until the test ends.
func (d *driver) start(c *clustertest.Cluster, socket string) {
	c.Helper()
	listener, err := net.Listen("unix", socket)
	c.ExpectNoError(err, "listen")
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, d)
	csi.RegisterControllerServer(server, d)
	go func() { _ = server.Serve(listener) }()
	c.Cleanup(server.Stop)
}

// counts returns how many volumes there are, how many found no room, and how often
// GetCapacity was called.
func (d *driver) counts() (volumes, failed, calls int) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return len(d.created), d.failed, d.calls
}

func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: driverName, VendorVersion: "1"}, nil
}

func (d *driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	r := &csi.GetPluginCapabilitiesResponse{}
	for _, t := range []csi.PluginCapability_Service_Type{
		csi.PluginCapability_Service_CONTROLLER_SERVICE, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS,
	} {
		r.Capabilities = append(r.Capabilities, &csi.PluginCapability{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: t}}})
	}
	return r, nil
}

func (d *driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	r := &csi.ControllerGetCapabilitiesResponse{}
	for _, t := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_GET_CAPACITY,
	} {
		r.Capabilities = append(r.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: t}}})
	}
	return r, nil
}

func (d *driver) GetCapacity(ctx context.Context, r *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	call := d.count()
	if d.capacityFault != nil {
		if err := d.capacityFault(call); err != nil {
			return nil, err
		}
	}
	free := d.capacityOf(r.GetAccessibleTopology().GetSegments()[topologyKey])
	if !d.answers.pass(ctx) {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return &csi.GetCapacityResponse{AvailableCapacity: free, AvailableCapacities: []int64{free}, MaximumVolumeSize: wrapperspb.Int64(free)}, nil
}

// count counts a call of GetCapacity, and returns its number.
func (d *driver) count() int {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.calls++
	return d.calls
}

func (d *driver) capacityOf(node string) int64 {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.free[node]
}

// fails reports whether a call of CreateVolume is to fail.
func (d *driver) fails() bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.failures--
	return d.failures >= 0
}

func (d *driver) CreateVolume(_ context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	topologies := slices.Concat(r.GetAccessibilityRequirements().GetPreferred(), r.GetAccessibilityRequirements().GetRequisite())
	if len(topologies) == 0 {
		return nil, status.Error(codes.InvalidArgument, "no topology")
	}
	if d.fails() {
		return nil, status.Error(codes.Internal, "the disk does not answer")
	}
	node, bytes := topologies[0].Segments[topologyKey], r.GetCapacityRange().GetRequiredBytes()
	end := d.history.Begin(history.Operation{Node: node, Kind: history.Create, Volume: r.Name, Bytes: bytes})
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if _, ok := d.created[r.Name]; !ok {
		if d.free[node] < bytes {
			d.failed++
			end(history.Refused, "")
			return nil, status.Errorf(codes.ResourceExhausted, "%d bytes are free on %s", d.free[node], node)
		}
		d.free[node] -= bytes
		d.created[r.Name] = time.Now()
	}
	end(history.OK, onlyPool)
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId: r.Name, CapacityBytes: bytes, AccessibleTopology: []*csi.Topology{{Segments: map[string]string{topologyKey: node}}},
	}}, nil
}
