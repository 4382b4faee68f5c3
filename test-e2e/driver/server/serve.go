package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/kubernetes-csi/csi-lib-utils/connection"
	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	"github.com/kubernetes-csi/csi-lib-utils/protosanitizer"
	"google.golang.org/grpc"

	"k8s.io/klog/v2"
)

// NewGRPC returns a server that logs and counts its calls. Calls that fail are logged at
// any verbosity, others at 4, and none with its secrets.
func NewGRPC(ctx context.Context, m metrics.CSIMetricsManager) *grpc.Server {
	logger := klog.FromContext(ctx)
	log := func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		logger := logger.WithValues("method", info.FullMethod)
		start := time.Now()
		response, err := handle(klog.NewContext(ctx, logger), request)
		if err != nil {
			logger.Error(err, "Call failed", "request", protosanitizer.StripSecrets(request), "duration", time.Since(start))
		} else {
			logger.V(4).Info("Call succeeded", "request", protosanitizer.StripSecrets(request), "response", protosanitizer.StripSecrets(response), "duration", time.Since(start))
		}
		return response, err
	}
	count := connection.ExtendedCSIMetricsManager{CSIMetricsManager: m}.RecordMetricsServerInterceptor
	return grpc.NewServer(grpc.ChainUnaryInterceptor(count, log))
}

// Serve serves on a socket until the context ends. A socket that another process has
// left is replaced.
func Serve(ctx context.Context, server *grpc.Server, socket string) error {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("serve on %s: %w", socket, err)
	}
	defer context.AfterFunc(ctx, server.GracefulStop)()
	klog.FromContext(ctx).Info("Serving", "socket", socket)
	return server.Serve(listener)
}

// ServeMetrics serves metrics at /metrics of an address, such as :9808, until the
// context ends.
func ServeMetrics(ctx context.Context, m metrics.CSIMetricsManager, address string) error {
	mux := http.NewServeMux()
	m.RegisterToServer(mux, "/metrics")
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}
