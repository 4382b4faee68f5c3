// SPDX-License-Identifier: Apache-2.0

package modeldriver

import (
	"context"
	"net"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// csiServer answers the calls of external-provisioner.
type csiServer struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer
	*Driver
	// node is the segment whose plugin this is, "" for a controller of all.
	node string
}

// Serve answers CSI calls until the server is stopped, as a controller of all segments, or as the
// plugin on a node of one segment.
func (d *Driver) Serve(listener net.Listener, node string) *grpc.Server {
	server, s := grpc.NewServer(), &csiServer{Driver: d, node: node}
	csi.RegisterIdentityServer(server, s)
	csi.RegisterControllerServer(server, s)
	csi.RegisterNodeServer(server, s)
	go func() { _ = server.Serve(listener) }()
	return server
}

func (s *csiServer) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (s *csiServer) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: s.Name, VendorVersion: "1"}, nil
}

func (s *csiServer) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	can := func(t csi.PluginCapability_Service_Type) *csi.PluginCapability {
		return &csi.PluginCapability{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: t}}}
	}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		can(csi.PluginCapability_Service_CONTROLLER_SERVICE), can(csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS),
	}}, nil
}

func (s *csiServer) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	can := func(t csi.ControllerServiceCapability_RPC_Type) *csi.ControllerServiceCapability {
		return &csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: t}}}
	}
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: []*csi.ControllerServiceCapability{
		can(csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME), can(csi.ControllerServiceCapability_RPC_GET_CAPACITY),
	}}, nil
}

func (s *csiServer) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: s.node, AccessibleTopology: &csi.Topology{Segments: s.Segments[s.segment(s.node)].Labels}}, nil
}

func (s *csiServer) GetCapacity(ctx context.Context, r *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	segment := s.segmentOf("", r.GetAccessibleTopology().GetSegments())
	if segment < 0 {
		return &csi.GetCapacityResponse{}, nil
	}
	numbers, err := s.getCapacity(ctx, segment)
	if err != nil {
		return nil, err
	}
	response := &csi.GetCapacityResponse{AvailableCapacity: numbers.Capacity, AvailableCapacities: numbers.Pools}
	if numbers.Maximum != nil {
		response.MaximumVolumeSize = wrapperspb.Int64(*numbers.Maximum)
	}
	return response, nil
}

func (s *csiServer) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	volume, segment, err := s.createVolume(ctx, r)
	if status.Code(err) == codes.ResourceExhausted {
		s.refuse(segment)
	}
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: volume}, nil
}

func (s *csiServer) DeleteVolume(_ context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	s.deleteVolume(r.VolumeId)
	return &csi.DeleteVolumeResponse{}, nil
}
