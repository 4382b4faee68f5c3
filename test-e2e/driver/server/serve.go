// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-lib-utils/protosanitizer"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"k8s.io/klog/v2"
)

// callTime is how long a call may take if its caller has set no end.
const callTime = 3 * time.Minute

// NewGRPC returns a server that refuses calls without what they need, and logs those that fail, without their secrets.
func NewGRPC(ctx context.Context) *grpc.Server {
	logger := klog.FromContext(ctx)
	return grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (response any, err error) {
		ctx, cancel := context.WithTimeout(klog.NewContext(ctx, logger.WithValues("method", info.FullMethod)), callTime)
		defer cancel()
		if err = check(request); err == nil {
			response, err = handle(ctx, request)
		}
		if err != nil {
			logger.Error(err, "Call failed", "method", info.FullMethod, "request", protosanitizer.StripSecrets(request))
		}
		return response, err
	}))
}

// check returns an error for a request that lacks what all of its kind have.
func check(request any) error {
	missing := ""
	if r, ok := request.(interface{ GetVolumeId() string }); ok && r.GetVolumeId() == "" {
		missing = "volume ID"
	}
	if r, ok := request.(interface{ GetStagingTargetPath() string }); ok && r.GetStagingTargetPath() == "" {
		missing = "staging target path"
	}
	if r, ok := request.(interface{ GetTargetPath() string }); ok && r.GetTargetPath() == "" {
		missing = "target path"
	}
	if missing != "" {
		return status.Errorf(codes.InvalidArgument, "%s is missing", missing)
	}
	if r, ok := request.(interface{ GetVolumeCapability() *csi.VolumeCapability }); ok {
		return supported(r.GetVolumeCapability())
	}
	return nil
}

// Serve serves on a socket until the context ends, and meanwhile runs something else, if that is not nil. A socket that
// another process has left is replaced, unless it still runs: two would not know of each other's calls.
func Serve(ctx context.Context, server *grpc.Server, socket string, run func(context.Context) error) error {
	lock, err := os.Create(socket + ".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("another driver serves on %s: %w", socket, err)
	}
	_ = os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("serve on %s: %w", socket, err)
	}
	klog.FromContext(ctx).Info("Serving", "socket", socket)
	group, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, server.GracefulStop)()
	group.Go(func() error { return server.Serve(listener) })
	if run != nil {
		group.Go(func() error { return run(ctx) })
	}
	return group.Wait()
}

// Identity is the identity service.
type Identity struct {
	csi.UnimplementedIdentityServer
	// Driver is the name of the CSIDriver.
	Driver string
}

// GetPluginInfo returns the name of the driver.
func (i *Identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: i.Driver, VendorVersion: "dev"}, nil
}

// GetPluginCapabilities says that there is a controller service, and that volumes are
// not everywhere.
func (i *Identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	var capabilities []*csi.PluginCapability
	for _, t := range []csi.PluginCapability_Service_Type{csi.PluginCapability_Service_CONTROLLER_SERVICE, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS} {
		capabilities = append(capabilities, &csi.PluginCapability{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: t}}})
	}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: capabilities}, nil
}

// Probe returns that the driver is ready: it serves only when it is.
func (i *Identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}
