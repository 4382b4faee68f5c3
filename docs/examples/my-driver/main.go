// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const (
	driverName  = "my-driver.example.com"
	topologyKey = "topology.my-driver.example.com/node"
)

type placed struct {
	pool  int
	bytes int64
}

type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer
	registerapi.UnimplementedRegistrationServer
	node, socket string

	mutex   sync.Mutex
	pools   []int64 // what is free, in bytes
	volumes map[string]placed
}

// Identity: external-provisioner does not start without these three.

func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: driverName, VendorVersion: "1"}, nil
}

func (d *driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	response := &csi.GetPluginCapabilitiesResponse{}
	for _, t := range []csi.PluginCapability_Service_Type{
		csi.PluginCapability_Service_CONTROLLER_SERVICE, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS,
	} {
		response.Capabilities = append(response.Capabilities, &csi.PluginCapability{
			Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: t}},
		})
	}
	return response, nil
}

// Controller.

func (d *driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	response := &csi.ControllerGetCapabilitiesResponse{}
	for _, t := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_GET_CAPACITY,
	} {
		response.Capabilities = append(response.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: t}},
		})
	}
	return response, nil
}

func (d *driver) GetCapacity(_ context.Context, r *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	// Where a pool is a disk: the smaller of this and what statfs says, because others may use the disk, too.
	free := slices.Clone(d.pools) // the response is sent when the mutex is free again
	if r.AccessibleTopology != nil && r.AccessibleTopology.Segments[topologyKey] != d.node {
		free = []int64{0} // no room is a pool of zero; an empty list means "I do not know"
	}
	response := &csi.GetCapacityResponse{AvailableCapacities: free, MaximumVolumeSize: wrapperspb.Int64(slices.Max(free))}
	for _, bytes := range free {
		response.AvailableCapacity += bytes
	}
	return response, nil
}

func (d *driver) CreateVolume(_ context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if r.Name == "" || len(r.VolumeCapabilities) == 0 {
		return nil, status.Error(codes.InvalidArgument, "name or capabilities are missing")
	}
	if err := supported(r.VolumeCapabilities...); err != nil {
		return nil, err
	}
	wanted := r.AccessibilityRequirements.GetRequisite()
	if len(wanted) > 0 && !slices.ContainsFunc(wanted, func(t *csi.Topology) bool { return t.Segments[topologyKey] == d.node }) {
		return nil, status.Errorf(codes.ResourceExhausted, "node %s is not among those where the volume is wanted", d.node)
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	bytes, limit := r.CapacityRange.GetRequiredBytes(), r.CapacityRange.GetLimitBytes()
	v, ok := d.volumes[r.Name]
	if ok && (v.bytes < bytes || limit > 0 && v.bytes > limit) {
		return nil, status.Errorf(codes.AlreadyExists, "volume %s exists, and has %d bytes", r.Name, v.bytes)
	}
	if !ok {
		// Best fit: the smallest pool that has room.
		v = placed{-1, bytes}
		for i, free := range d.pools {
			if free >= bytes && (v.pool < 0 || free < d.pools[v.pool]) {
				v.pool = i
			}
		}
		if v.pool < 0 {
			return nil, status.Error(codes.ResourceExhausted, "no pool has enough room") // the scheduler tries another node
		}
		d.pools[v.pool] -= bytes
		d.volumes[r.Name] = v
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId: r.Name, CapacityBytes: v.bytes,
		AccessibleTopology: []*csi.Topology{{Segments: map[string]string{topologyKey: d.node}}},
	}}, nil
}

func (d *driver) DeleteVolume(_ context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if r.VolumeId == "" {
		return nil, status.Error(codes.InvalidArgument, "volume ID is missing")
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if v, ok := d.volumes[r.VolumeId]; ok {
		d.pools[v.pool] += v.bytes
		delete(d.volumes, r.VolumeId)
	}
	return &csi.DeleteVolumeResponse{}, nil
}

func (d *driver) ValidateVolumeCapabilities(_ context.Context, r *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if r.VolumeId == "" || len(r.VolumeCapabilities) == 0 {
		return nil, status.Error(codes.InvalidArgument, "volume ID or capabilities are missing")
	}
	if _, err := d.find(r.VolumeId); err != nil {
		return nil, err
	}
	if err := supported(r.VolumeCapabilities...); err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: err.Error()}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{VolumeCapabilities: r.VolumeCapabilities}}, nil
}

func (d *driver) find(id string) (placed, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	v, ok := d.volumes[id]
	if !ok {
		return v, status.Errorf(codes.NotFound, "no volume %s", id)
	}
	return v, nil
}

// supported refuses raw block volumes: a tmpfs is no device.
func supported(capabilities ...*csi.VolumeCapability) error {
	for _, c := range capabilities {
		if c.GetMount() == nil {
			return status.Error(codes.InvalidArgument, "only volumes with a file system are supported")
		}
	}
	return nil
}

// Node.

func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.node, AccessibleTopology: &csi.Topology{Segments: map[string]string{topologyKey: d.node}}}, nil
}

func (d *driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

func (d *driver) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if r.VolumeId == "" || r.TargetPath == "" || r.VolumeCapability == nil {
		return nil, status.Error(codes.InvalidArgument, "volume ID, target path or capability is missing")
	}
	v, err := d.find(r.VolumeId)
	if err == nil {
		err = supported(r.VolumeCapability)
	}
	if err != nil {
		return nil, err
	}
	mounted, err := false, os.MkdirAll(r.TargetPath, 0o750)
	if err == nil {
		mounted, err = isMounted(r.TargetPath)
	}
	if err == nil && !mounted { // a second mount would hide the data of the pod
		err = syscall.Mount("tmpfs", r.TargetPath, "tmpfs", 0, fmt.Sprintf("size=%d", v.bytes))
	}
	if err != nil {
		return nil, status.Errorf(codes.Internal, "mount volume %s: %v", r.VolumeId, err)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (d *driver) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if r.VolumeId == "" || r.TargetPath == "" {
		return nil, status.Error(codes.InvalidArgument, "volume ID or target path is missing")
	}
	for syscall.Unmount(r.TargetPath, 0) == nil { // until nothing is mounted there; if it fails otherwise, so does Remove
	}
	if err := os.Remove(r.TargetPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, status.Errorf(codes.Internal, "unmount volume %s: %v", r.VolumeId, err)
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// isMounted reads the list of mounts. Devices do not tell: that of a bind mount may be that of the folder around it.
func isMounted(path string) (bool, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if strings.Fields(line)[4] == path {
			return true, nil
		}
	}
	return false, err
}

// Registration with the kubelet, for which other drivers have a sidecar.

func (d *driver) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: registerapi.CSIPlugin, Name: driverName, Endpoint: d.socket, SupportedVersions: []string{"1.0.0"}}, nil
}

func (d *driver) NotifyRegistrationStatus(_ context.Context, s *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	log.Printf("registered: %v %s", s.PluginRegistered, s.Error)
	return &registerapi.RegistrationStatusResponse{}, nil
}

// listen replaces a socket that an earlier process has left.
func listen(socket string) net.Listener {
	_ = os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		log.Fatal(err)
	}
	return listener
}

// The arguments are the socket of the driver and the one of its registration.
func main() {
	d := &driver{node: os.Getenv("NODE_NAME"), socket: os.Args[1], pools: []int64{100 << 30, 60 << 30}, volumes: map[string]placed{}}
	server, registration := grpc.NewServer(), grpc.NewServer()
	csi.RegisterIdentityServer(server, d)
	csi.RegisterControllerServer(server, d)
	csi.RegisterNodeServer(server, d)
	registerapi.RegisterRegistrationServer(registration, d)
	go func() { log.Fatal(registration.Serve(listen(os.Args[2]))) }()
	log.Fatal(server.Serve(listen(os.Args[1])))
}
