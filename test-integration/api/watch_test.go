package api

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/apiservertest"
)

// watchTimeout is how long an event may take; it comes at once.
const watchTimeout = time.Minute

// TestCSIStorageCapacityWatch checks that a watch delivers the pools: it is how
// the scheduler learns them.
func TestCSIStorageCapacityWatch(t *testing.T) {
	tCtx := ktesting.Init(t)
	server := apiservertest.StartGateOn(tCtx, apiservertest.NewStorage())

	for name, contentType := range map[string]string{
		"json":     runtime.ContentTypeJSON,
		"protobuf": runtime.ContentTypeProtobuf,
	} {
		tCtx.Run(name, func(tCtx ktesting.TContext) {
			client := server.ClientFor(tCtx, contentType)
			events := must[watch.Interface](tCtx, "watch")(
				client.StorageV1().CSIStorageCapacities(ns).Watch(tCtx, metav1.ListOptions{FieldSelector: "metadata.name=" + name}))
			defer events.Stop()

			createCapacity(tCtx, client, newCapacity(name, "100Gi", "20Gi"))
			updateCapacity(tCtx, client, name, func(c *storagev1.CSIStorageCapacity) {
				c.AvailableCapacities = quantities("40Gi", "20Gi")
			})

			expectEvent(tCtx, events, watch.Added, "100Gi", "20Gi")
			expectEvent(tCtx, events, watch.Modified, "40Gi", "20Gi")
		})
	}
}

// expectEvent takes the next event. The watch goes on.
func expectEvent(tCtx ktesting.TContext, events watch.Interface, want watch.EventType, wantPools ...string) {
	tCtx.Helper()
	select {
	case event, ok := <-events.ResultChan():
		if !ok {
			tCtx.Fatalf("the watch has ended, want %s", want)
		}
		if event.Type != want {
			tCtx.Errorf("event %s, want %s", event.Type, want)
		}
		capacity, ok := event.Object.(*storagev1.CSIStorageCapacity)
		if !ok {
			tCtx.Fatalf("event has a %T: %v", event.Object, event.Object)
		}
		if diff := cmp.Diff(wantPools, pools(capacity)); diff != "" {
			tCtx.Errorf("availableCapacities of the event %s (-want +got):\n%s", event.Type, diff)
		}
	case <-time.After(watchTimeout):
		tCtx.Fatalf("no event %s within %s", want, watchTimeout)
	case <-tCtx.Done():
		tCtx.Fatalf("no event %s: %v", want, tCtx.Err())
	}
}
