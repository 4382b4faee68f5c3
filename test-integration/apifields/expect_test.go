// SPDX-License-Identifier: Apache-2.0

package apifields

import (
	"time"

	"github.com/google/go-cmp/cmp"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/test/utils/ktesting"
)

// expectPools reports pools other than want. No want means that the field must
// be unset. step names what was done before.
func expectPools(tCtx ktesting.TContext, step string, got *storagev1.CSIStorageCapacity, want ...string) {
	tCtx.Helper()
	if diff := cmp.Diff(want, pools(got)); diff != "" {
		tCtx.Errorf("availableCapacities after %s (-want +got):\n%s", step, diff)
	}
}

// expectRebuilding reports a volumeRebuilding other than want.
func expectRebuilding(tCtx ktesting.TContext, step string, got *storagev1.CSIDriver, want *bool) {
	tCtx.Helper()
	if show(got.Spec.VolumeRebuilding) != show(want) {
		tCtx.Errorf("volumeRebuilding after %s: %s, want %s", step, show(got.Spec.VolumeRebuilding), show(want))
	}
}

// expectRestUnharmed reports differences outside of our fields and of the
// metadata that a write changes.
func expectRestUnharmed(tCtx ktesting.TContext, step string, want, got *storagev1.CSIStorageCapacity) {
	tCtx.Helper()
	strip := func(c *storagev1.CSIStorageCapacity) *storagev1.CSIStorageCapacity {
		c = c.DeepCopy()
		c.AvailableCapacities = nil
		c.ResourceVersion, c.ManagedFields = "", nil
		return c
	}
	if !equality.Semantic.DeepEqual(strip(want), strip(got)) {
		tCtx.Errorf("object after %s (-want +got):\n%s", step, cmp.Diff(strip(want), strip(got)))
	}
}

// must ends the test when err is not nil, and else passes the object on.
func must[T any](tCtx ktesting.TContext, step string) func(obj T, err error) T {
	return func(obj T, err error) T {
		tCtx.Helper()
		if err != nil {
			tCtx.Fatalf("%s: %v", step, err)
		}
		return obj
	}
}

func createCapacity(tCtx ktesting.TContext, client kubernetes.Interface, c *storagev1.CSIStorageCapacity) *storagev1.CSIStorageCapacity {
	tCtx.Helper()
	return must[*storagev1.CSIStorageCapacity](tCtx, "create "+c.Name)(
		client.StorageV1().CSIStorageCapacities(ns).Create(tCtx, c, metav1.CreateOptions{}))
}

func getCapacity(tCtx ktesting.TContext, client kubernetes.Interface, name string) *storagev1.CSIStorageCapacity {
	tCtx.Helper()
	return must[*storagev1.CSIStorageCapacity](tCtx, "get "+name)(
		client.StorageV1().CSIStorageCapacities(ns).Get(tCtx, name, metav1.GetOptions{}))
}

// updateCapacity reads the object, changes it and writes it.
func updateCapacity(tCtx ktesting.TContext, client kubernetes.Interface, name string, change func(*storagev1.CSIStorageCapacity)) *storagev1.CSIStorageCapacity {
	tCtx.Helper()
	c := getCapacity(tCtx, client, name)
	change(c)
	return must[*storagev1.CSIStorageCapacity](tCtx, "update "+name)(
		client.StorageV1().CSIStorageCapacities(ns).Update(tCtx, c, metav1.UpdateOptions{}))
}

func createDriver(tCtx ktesting.TContext, client kubernetes.Interface, d *storagev1.CSIDriver) *storagev1.CSIDriver {
	tCtx.Helper()
	return must[*storagev1.CSIDriver](tCtx, "create "+d.Name)(
		client.StorageV1().CSIDrivers().Create(tCtx, d, metav1.CreateOptions{}))
}

func getDriver(tCtx ktesting.TContext, client kubernetes.Interface, name string) *storagev1.CSIDriver {
	tCtx.Helper()
	return must[*storagev1.CSIDriver](tCtx, "get "+name)(
		client.StorageV1().CSIDrivers().Get(tCtx, name, metav1.GetOptions{}))
}

// updateDriver reads the object, changes it and writes it.
func updateDriver(tCtx ktesting.TContext, client kubernetes.Interface, name string, change func(*storagev1.CSIDriver)) *storagev1.CSIDriver {
	tCtx.Helper()
	d := getDriver(tCtx, client, name)
	change(d)
	return must[*storagev1.CSIDriver](tCtx, "update "+name)(
		client.StorageV1().CSIDrivers().Update(tCtx, d, metav1.UpdateOptions{}))
}

// touch makes an update that has nothing to do with our fields.
func touch(obj metav1.Object) { obj.SetLabels(map[string]string{"touched": "true"}) }

// watchTimeout is how long an event may take; it comes at once.
const watchTimeout = time.Minute

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
