// Package record writes what a driver does, for tests that check it. Only drivers that are built with the tag "record"
// have it.
package record

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"k8s.io/klog/v2"

	"capacityv2.internal/test-e2e/driver/pool"
)

// Event is what a driver did.
type Event struct {
	// Event is one of [pool.Store.Record], or, at the end of a call, "create" or "delete".
	Event string    `json:"event"`
	At    time.Time `json:"at"`
	Node  string    `json:"node,omitempty"`
	// Volume is the ID, and Name that of the call.
	Volume string `json:"volume,omitempty"`
	Name   string `json:"name,omitempty"`
	Pool   string `json:"pool,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
	// Pools are the names of those that are allowed. Empty: all.
	Pools []string `json:"pools,omitempty"`
	// Code is what the call returned, and Began when it came.
	Code  string    `json:"code,omitempty"`
	Began time.Time `json:"began,omitzero"`
}

// Writer writes events, a line of JSON each.
type Writer struct{ io.Writer }

// Room is for [pool.Store.Record].
func (w Writer) Room(event, node string, v pool.Volume) {
	w.write(Event{Event: event, At: time.Now(), Node: node, Volume: v.ID, Pool: v.Pool, Bytes: v.CapacityBytes, Pools: v.Pools})
}

// Call is an interceptor that writes the end of each call that creates or deletes a volume.
func (w Writer) Call(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	began := time.Now()
	response, err := handle(ctx, request)
	e := Event{At: time.Now(), Began: began, Code: status.Code(err).String()}
	switch r := request.(type) {
	case *csi.CreateVolumeRequest:
		e.Event, e.Name, e.Bytes = "create", r.GetName(), r.GetCapacityRange().GetRequiredBytes()
		w.write(e)
	case *csi.DeleteVolumeRequest:
		e.Event, e.Volume = "delete", r.GetVolumeId()
		w.write(e)
	}
	return response, err
}

func (w Writer) write(e Event) {
	line, err := json.Marshal(e)
	if err == nil {
		_, err = w.Write(append(line, '\n'))
	}
	if err != nil {
		klog.Background().Error(err, "Cannot write what the driver did", "event", e)
	}
}
