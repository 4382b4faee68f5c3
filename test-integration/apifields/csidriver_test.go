// SPDX-License-Identifier: Apache-2.0

package apifields

import (
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// TestCSIDriverRoundTrip writes volumeRebuilding in each way that a client has,
// and reads it back. The field is mutable, and a change is a new generation.
func TestCSIDriverRoundTrip(t *testing.T) {
	tCtx := ktesting.Init(t)
	server := clustertest.BorrowServer(tCtx, clustertest.Options{})

	for name, contentType := range map[string]string{
		"json":     runtime.ContentTypeJSON,
		"protobuf": runtime.ContentTypeProtobuf,
	} {
		tCtx.Run(name, func(tCtx ktesting.TContext) {
			client := server.ClientFor(tCtx, contentType)
			drivers := client.StorageV1().CSIDrivers()

			created := createDriver(tCtx, client, newDriver(name, new(true)))
			expectRebuilding(tCtx, "create", created, new(true))
			expectRebuilding(tCtx, "get", getDriver(tCtx, client, name), new(true))

			list := must[*storagev1.CSIDriverList](tCtx, "list")(
				drivers.List(tCtx, metav1.ListOptions{FieldSelector: "metadata.name=" + name}))
			if len(list.Items) != 1 {
				tCtx.Fatalf("list: %d objects, want 1", len(list.Items))
			}
			expectRebuilding(tCtx, "list", &list.Items[0], new(true))

			updated := updateDriver(tCtx, client, name, func(d *storagev1.CSIDriver) { d.Spec.VolumeRebuilding = new(false) })
			expectRebuilding(tCtx, "update", updated, new(false))
			if updated.Generation <= created.Generation {
				tCtx.Errorf("generation after update: %d, want more than %d", updated.Generation, created.Generation)
			}

			for _, body := range []string{`{"spec":{"volumeRebuilding":true}}`, `{"spec":{"podInfoOnMount":true}}`} {
				patched := must[*storagev1.CSIDriver](tCtx, "patch "+body)(
					drivers.Patch(tCtx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}))
				expectRebuilding(tCtx, "patch "+body, patched, new(true))
			}

			removed := must[*storagev1.CSIDriver](tCtx, "patch with null")(
				drivers.Patch(tCtx, name, types.MergePatchType, []byte(`{"spec":{"volumeRebuilding":null}}`), metav1.PatchOptions{}))
			expectRebuilding(tCtx, "patch with null", removed, new(false))
		})
	}
}
