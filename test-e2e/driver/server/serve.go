// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/kubernetes-csi/csi-lib-utils/protosanitizer"
	"google.golang.org/grpc"

	"k8s.io/klog/v2"
)

// NewGRPC returns a server that logs calls that fail, without their secrets.
func NewGRPC(ctx context.Context) *grpc.Server {
	logger := klog.FromContext(ctx)
	return grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		response, err := handle(klog.NewContext(ctx, logger.WithValues("method", info.FullMethod)), request)
		if err != nil {
			logger.Error(err, "Call failed", "method", info.FullMethod, "request", protosanitizer.StripSecrets(request))
		}
		return response, err
	}))
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
