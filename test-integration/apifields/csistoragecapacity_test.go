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

// TestCSIStorageCapacityRoundTrip writes availableCapacities in each way that a
// client has, and reads it back. The order of the entries is kept.
func TestCSIStorageCapacityRoundTrip(t *testing.T) {
	tCtx := ktesting.Init(t)
	server := clustertest.BorrowServer(tCtx, clustertest.Options{})

	for name, contentType := range map[string]string{
		"json":     runtime.ContentTypeJSON,
		"protobuf": runtime.ContentTypeProtobuf,
	} {
		tCtx.Run(name, func(tCtx ktesting.TContext) {
			client := server.ClientFor(tCtx, contentType)
			capacities := client.StorageV1().CSIStorageCapacities(ns)

			created := createCapacity(tCtx, client, newCapacity(name, "100Gi", "20Gi", "60Gi"))
			expectPools(tCtx, "create", created, "100Gi", "20Gi", "60Gi")
			expectPools(tCtx, "get", getCapacity(tCtx, client, name), "100Gi", "20Gi", "60Gi")

			list := must[*storagev1.CSIStorageCapacityList](tCtx, "list")(
				capacities.List(tCtx, metav1.ListOptions{FieldSelector: "metadata.name=" + name}))
			if len(list.Items) != 1 {
				tCtx.Fatalf("list: %d objects, want 1", len(list.Items))
			}
			expectPools(tCtx, "list", &list.Items[0], "100Gi", "20Gi", "60Gi")

			updated := updateCapacity(tCtx, client, name, func(c *storagev1.CSIStorageCapacity) {
				c.AvailableCapacities = quantities("0", "20Gi")
			})
			expectPools(tCtx, "update", updated, "0", "20Gi")
			expectRestUnharmed(tCtx, "update", created, updated)

			patch := func(step string, patchType types.PatchType, body string) *storagev1.CSIStorageCapacity {
				tCtx.Helper()
				return must[*storagev1.CSIStorageCapacity](tCtx, step)(
					capacities.Patch(tCtx, name, patchType, []byte(body), metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}))
			}
			// An atomic list: both kinds of merge replace it as a whole.
			expectPools(tCtx, "merge patch",
				patch("merge patch", types.MergePatchType, `{"availableCapacities":["1Gi","2Gi"]}`), "1Gi", "2Gi")
			expectPools(tCtx, "merge patch of another field",
				patch("merge patch of another field", types.MergePatchType, `{"capacity":"100Gi"}`), "1Gi", "2Gi")
			expectPools(tCtx, "strategic merge patch",
				patch("strategic merge patch", types.StrategicMergePatchType, `{"availableCapacities":["3Gi"]}`), "3Gi")
			expectPools(tCtx, "JSON patch",
				patch("JSON patch", types.JSONPatchType, `[{"op":"add","path":"/availableCapacities/-","value":"4Gi"}]`), "3Gi", "4Gi")
			expectPools(tCtx, "merge patch with null",
				patch("merge patch with null", types.MergePatchType, `{"availableCapacities":null}`))
		})
	}
}
