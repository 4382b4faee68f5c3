// SPDX-License-Identifier: Apache-2.0

package apifields

import (
	"bytes"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// TestStockAfterRollback replaces the patched kube-apiserver by the stock one
// over the same etcd, and back again.
//
// The stock server reads everything, without our fields. What it writes it
// writes without them: it decodes the stored object, which drops fields that it
// does not know, and encodes it again. That loses the fields of an object that
// is written during the rollback, until its driver reports again, and of no
// other.
func TestStockAfterRollback(t *testing.T) {
	tCtx := ktesting.Init(t)
	storage := clustertest.NewStorage()

	server := clustertest.StartGateOn(tCtx, storage)
	before := map[string]*storagev1.CSIStorageCapacity{}
	for _, name := range []string{"untouched", "written"} {
		before[name] = createCapacity(tCtx, server.Client, newCapacity(name, "100Gi", "20Gi"))
		createDriver(tCtx, server.Client, newDriver(name+".example.com", new(true)))
	}
	server.Stop()

	server = clustertest.StartStock(tCtx, storage)
	for name, contentType := range map[string]string{
		"json":     runtime.ContentTypeJSON,
		"protobuf": runtime.ContentTypeProtobuf,
	} {
		tCtx.Run("read "+name, func(tCtx ktesting.TContext) {
			client := server.ClientFor(tCtx, contentType)
			list := must[*storagev1.CSIStorageCapacityList](tCtx, "list from the stock server")(
				client.StorageV1().CSIStorageCapacities(ns).List(tCtx, metav1.ListOptions{}))
			if len(list.Items) != len(before) {
				tCtx.Errorf("list from the stock server: %d objects, want %d", len(list.Items), len(before))
			}
			for i := range list.Items {
				expectPools(tCtx, "list from the stock server", &list.Items[i])
				expectRestUnharmed(tCtx, "list from the stock server", before[list.Items[i].Name], &list.Items[i])
			}
			for name, want := range before {
				got := getCapacity(tCtx, client, name)
				expectPools(tCtx, "get from the stock server", got)
				expectRestUnharmed(tCtx, "get from the stock server", want, got)
				expectRebuilding(tCtx, "get from the stock server", getDriver(tCtx, client, name+".example.com"), nil)
			}
			// A watch from the beginning delivers what is stored.
			events := must[watch.Interface](tCtx, "watch the stock server")(
				client.StorageV1().CSIStorageCapacities(ns).Watch(tCtx, metav1.ListOptions{
					ResourceVersion: "0", FieldSelector: "metadata.name=written"}))
			defer events.Stop()
			expectEvent(tCtx, events, watch.Added)
		})
	}
	updateCapacity(tCtx, server.Client, "written", func(c *storagev1.CSIStorageCapacity) { touch(c) })
	updateDriver(tCtx, server.Client, "written.example.com", func(d *storagev1.CSIDriver) { touch(d) })
	server.Stop()

	server = clustertest.StartGateOn(tCtx, storage)
	untouched := getCapacity(tCtx, server.Client, "untouched")
	expectPools(tCtx, "the rollback", untouched, "100Gi", "20Gi")
	expectRestUnharmed(tCtx, "the rollback", before["untouched"], untouched)
	expectRebuilding(tCtx, "the rollback", getDriver(tCtx, server.Client, "untouched.example.com"), new(true))

	expectPools(tCtx, "a write by the stock server", getCapacity(tCtx, server.Client, "written"))
	expectRebuilding(tCtx, "a write by the stock server", getDriver(tCtx, server.Client, "written.example.com"), new(false))

	// The driver reports again.
	got := updateCapacity(tCtx, server.Client, "written", func(c *storagev1.CSIStorageCapacity) {
		c.AvailableCapacities = quantities("100Gi", "20Gi")
	})
	expectPools(tCtx, "a new report", got, "100Gi", "20Gi")
}

// TestStockBesidePatched runs both servers on one etcd, as during a rolling
// update of a control plane with several of them.
func TestStockBesidePatched(t *testing.T) {
	tCtx := ktesting.Init(t)
	storage := clustertest.NewStorage()
	patched := clustertest.StartGateOn(tCtx, storage)
	stock := clustertest.StartStock(tCtx, storage)

	watchOne := func(server *clustertest.Server) watch.Interface {
		tCtx.Helper()
		return must[watch.Interface](tCtx, "watch")(
			server.Client.StorageV1().CSIStorageCapacities(ns).Watch(tCtx, metav1.ListOptions{FieldSelector: "metadata.name=shared"}))
	}
	stockEvents, patchedEvents := watchOne(stock), watchOne(patched)
	defer stockEvents.Stop()
	defer patchedEvents.Stop()

	createCapacity(tCtx, patched.Client, newCapacity("shared", "100Gi", "20Gi"))
	expectEvent(tCtx, patchedEvents, watch.Added, "100Gi", "20Gi")
	expectEvent(tCtx, stockEvents, watch.Added)

	updateCapacity(tCtx, patched.Client, "shared", func(c *storagev1.CSIStorageCapacity) {
		c.AvailableCapacities = quantities("40Gi")
	})
	expectEvent(tCtx, patchedEvents, watch.Modified, "40Gi")
	expectEvent(tCtx, stockEvents, watch.Modified)

	// A write through the stock server drops the list, and the watchers of the
	// patched server learn it.
	updateCapacity(tCtx, stock.Client, "shared", func(c *storagev1.CSIStorageCapacity) { touch(c) })
	expectEvent(tCtx, stockEvents, watch.Modified)
	expectEvent(tCtx, patchedEvents, watch.Modified)
	expectPools(tCtx, "a write by the stock server", getCapacity(tCtx, patched.Client, "shared"))
}

// TestStockIgnoresFields checks that a client of the new API can talk to the
// stock server: the fields are ignored, in JSON with a warning.
func TestStockIgnoresFields(t *testing.T) {
	tCtx := ktesting.Init(t)
	stock := clustertest.StartStock(tCtx, clustertest.NewStorage())
	for name, contentType := range map[string]string{
		"json":     runtime.ContentTypeJSON,
		"protobuf": runtime.ContentTypeProtobuf,
	} {
		client := stock.ClientFor(tCtx, contentType)
		got := createCapacity(tCtx, client, newCapacity(name, "100Gi"))
		expectPools(tCtx, "create on the stock server, "+name, got)
		expectRestUnharmed(tCtx, "create on the stock server, "+name, newCapacityAs(got, name), got)
		driver := createDriver(tCtx, client, newDriver(name+".example.com", new(true)))
		expectRebuilding(tCtx, "create on the stock server, "+name, driver, nil)
	}
	raw, err := stock.Client.StorageV1().RESTClient().Get().Namespace(ns).Resource("csistoragecapacities").DoRaw(tCtx)
	if err != nil {
		tCtx.Fatal(err)
	}
	if bytes.Contains(raw, []byte("availableCapacities")) {
		// Not even as a managed field.
		tCtx.Errorf("the stock server stored availableCapacities: %s", raw)
	}
}
