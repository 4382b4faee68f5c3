package server

import (
	"context"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/status"

	"k8s.io/klog/v2"

	"capacityv2.internal/test-e2e/driver/pool"
)

// Record returns what logs the record of a [pool.Store].
func Record(ctx context.Context) func(event, node string, v pool.Volume) {
	return func(event, node string, v pool.Volume) {
		klog.FromContext(ctx).Info("Room", "event", event, "node", node, "volume", v.ID, "pool", v.Pool, "bytes", v.CapacityBytes, "pools", strings.Join(v.Pools, ","), "at", now())
	}
}

// recordEnd logs the end of a call that creates or deletes a volume.
func recordEnd(logger klog.Logger, request any, err error, began string) {
	switch r := request.(type) {
	case *csi.CreateVolumeRequest:
		logger.Info("Call ended", "event", "create", "name", r.GetName(), "bytes", r.GetCapacityRange().GetRequiredBytes(), "code", status.Code(err), "began", began, "at", now())
	case *csi.DeleteVolumeRequest:
		logger.Info("Call ended", "event", "delete", "volume", r.GetVolumeId(), "code", status.Code(err), "began", began, "at", now())
	}
}

func now() string { return time.Now().Format(time.RFC3339Nano) }
