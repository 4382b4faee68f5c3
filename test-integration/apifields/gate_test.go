// SPDX-License-Identifier: Apache-2.0

package apifields

import (
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// TestGateOffDropsOnCreate checks that a server with the gate off takes objects
// with our fields, and stores them without. A server with the gate on reads them
// from the same etcd, so that it is the stored object that is looked at.
func TestGateOffDropsOnCreate(t *testing.T) {
	tCtx := ktesting.Init(t)
	storage := clustertest.NewStorage()

	server := clustertest.StartGateOff(tCtx, storage)
	capacity := createCapacity(tCtx, server.Client, newCapacity("off", "100Gi", "20Gi"))
	expectPools(tCtx, "create with the gate off", capacity)
	expectRestUnharmed(tCtx, "create with the gate off", newCapacityAs(capacity, "off"), capacity)
	driver := createDriver(tCtx, server.Client, newDriver("off.example.com", new(true)))
	expectRebuilding(tCtx, "create with the gate off", driver, nil)

	// Nor do they come in by an update.
	capacity = updateCapacity(tCtx, server.Client, "off", func(c *storagev1.CSIStorageCapacity) {
		c.AvailableCapacities = quantities("100Gi")
	})
	expectPools(tCtx, "update with the gate off", capacity)
	driver = updateDriver(tCtx, server.Client, "off.example.com", func(d *storagev1.CSIDriver) {
		d.Spec.VolumeRebuilding = new(true)
	})
	expectRebuilding(tCtx, "update with the gate off", driver, nil)
	server.Stop()

	server = clustertest.StartGateOn(tCtx, storage)
	expectPools(tCtx, "the gate was switched on", getCapacity(tCtx, server.Client, "off"))
	expectRebuilding(tCtx, "the gate was switched on", getDriver(tCtx, server.Client, "off.example.com"), new(false))
	// With the gate on, the same server accepts them.
	capacity = updateCapacity(tCtx, server.Client, "off", func(c *storagev1.CSIStorageCapacity) {
		c.AvailableCapacities = quantities("100Gi")
	})
	expectPools(tCtx, "update with the gate on", capacity, "100Gi")
}

// newCapacityAs returns what newCapacity makes, with the metadata that the
// server gave to got.
func newCapacityAs(got *storagev1.CSIStorageCapacity, name string) *storagev1.CSIStorageCapacity {
	want := newCapacity(name)
	want.ObjectMeta = got.ObjectMeta
	return want
}

// TestGateRestart switches the gate on, off and on again over the same etcd.
// While it is off, stored fields are kept, and stay writable in objects that
// have them: an update by a client that knows them must not lose them.
func TestGateRestart(t *testing.T) {
	tCtx := ktesting.Init(t)
	storage := clustertest.NewStorage()

	server := clustertest.StartGateOn(tCtx, storage)
	for _, name := range []string{"kept", "changed", "removed"} {
		expectPools(tCtx, "create", createCapacity(tCtx, server.Client, newCapacity(name, "100Gi", "20Gi")), "100Gi", "20Gi")
		driver := createDriver(tCtx, server.Client, newDriver(name+".example.com", new(true)))
		expectRebuilding(tCtx, "create", driver, new(true))
	}
	server.Stop()

	server = clustertest.StartGateOff(tCtx, storage)
	expectPools(tCtx, "restart with the gate off", getCapacity(tCtx, server.Client, "kept"), "100Gi", "20Gi")
	expectRebuilding(tCtx, "restart with the gate off", getDriver(tCtx, server.Client, "kept.example.com"), new(true))

	capacity := updateCapacity(tCtx, server.Client, "kept", func(c *storagev1.CSIStorageCapacity) { touch(c) })
	expectPools(tCtx, "update of a label, gate off", capacity, "100Gi", "20Gi")
	driver := updateDriver(tCtx, server.Client, "kept.example.com", func(d *storagev1.CSIDriver) { touch(d) })
	expectRebuilding(tCtx, "update of a label, gate off", driver, new(true))

	capacity = updateCapacity(tCtx, server.Client, "changed", func(c *storagev1.CSIStorageCapacity) {
		c.AvailableCapacities = quantities("1Gi")
	})
	expectPools(tCtx, "change, gate off", capacity, "1Gi")
	driver = updateDriver(tCtx, server.Client, "changed.example.com", func(d *storagev1.CSIDriver) {
		d.Spec.VolumeRebuilding = new(false)
	})
	expectRebuilding(tCtx, "change, gate off", driver, new(false))

	// Once removed, the fields cannot come back.
	for _, values := range [][]string{nil, {"1Gi"}} {
		capacity = updateCapacity(tCtx, server.Client, "removed", func(c *storagev1.CSIStorageCapacity) {
			c.AvailableCapacities = quantities(values...)
		})
		expectPools(tCtx, "removal, gate off", capacity)
	}
	for _, value := range []*bool{nil, new(true)} {
		driver = updateDriver(tCtx, server.Client, "removed.example.com", func(d *storagev1.CSIDriver) {
			d.Spec.VolumeRebuilding = value
		})
		expectRebuilding(tCtx, "removal, gate off", driver, nil)
	}
	server.Stop()

	server = clustertest.StartGateOn(tCtx, storage)
	expectPools(tCtx, "restart with the gate on", getCapacity(tCtx, server.Client, "kept"), "100Gi", "20Gi")
	expectPools(tCtx, "restart with the gate on", getCapacity(tCtx, server.Client, "changed"), "1Gi")
	expectPools(tCtx, "restart with the gate on", getCapacity(tCtx, server.Client, "removed"))
	expectRebuilding(tCtx, "restart with the gate on", getDriver(tCtx, server.Client, "kept.example.com"), new(true))
	expectRebuilding(tCtx, "restart with the gate on", getDriver(tCtx, server.Client, "changed.example.com"), new(false))
	expectRebuilding(tCtx, "restart with the gate on", getDriver(tCtx, server.Client, "removed.example.com"), new(false))
	capacity = updateCapacity(tCtx, server.Client, "removed", func(c *storagev1.CSIStorageCapacity) {
		c.AvailableCapacities = quantities("5Gi")
	})
	expectPools(tCtx, "update with the gate on", capacity, "5Gi")
}
