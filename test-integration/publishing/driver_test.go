// SPDX-License-Identifier: Apache-2.0

package publishing

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// driver reports one number. It cannot do anything else.
type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	name  string
	bytes atomic.Int64
}

// start starts the driver and external-provisioner, both until the test ends.
func (d *driver) start(tCtx ktesting.TContext, server *rest.Config, env []string, flags ...string) *clustertest.Process {
	tCtx.Helper()
	dir, err := os.MkdirTemp("", "csi") // the path of tCtx.TempDir is too long for a socket
	tCtx.ExpectNoError(err)
	tCtx.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "csi.sock")
	listener, err := net.Listen("unix", socket)
	tCtx.ExpectNoError(err)
	grpcServer := grpc.NewServer()
	csi.RegisterIdentityServer(grpcServer, d)
	csi.RegisterControllerServer(grpcServer, d)
	go func() { _ = grpcServer.Serve(listener) }()
	tCtx.Cleanup(grpcServer.Stop)
	return clustertest.StartProcess(tCtx, clustertest.Program(tCtx, "COMPONENTS", "csi-provisioner"), env, append([]string{
		"--csi-address=" + socket, "--kubeconfig=" + clustertest.Kubeconfig(tCtx, server, ""), "--enable-capacity",
		"--kube-api-capacity-qps=20", "--capacity-poll-interval=1s", "--retry-interval-start=100ms",
	}, flags...)...)
}

func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.name, VendorVersion: "1"}, nil
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

func (d *driver) GetCapacity(context.Context, *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	return &csi.GetCapacityResponse{AvailableCapacity: d.bytes.Load()}, nil
}
