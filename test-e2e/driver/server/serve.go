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
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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

// Serve serves on a socket until the context ends. A socket that another process has
// left is replaced.
func Serve(ctx context.Context, server *grpc.Server, socket string) error {
	_ = os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("serve on %s: %w", socket, err)
	}
	defer context.AfterFunc(ctx, server.GracefulStop)()
	klog.FromContext(ctx).Info("Serving", "socket", socket)
	return server.Serve(listener)
}
