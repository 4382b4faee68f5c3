// SPDX-License-Identifier: Apache-2.0

package apifields

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// maxPools is the limit that the API declares for drivers.
const maxPools = storagev1.CSIStorageCapacityMaxAvailableCapacities

// TestCSIStorageCapacityValidation checks what is refused on create, update and
// patch, and with which message.
func TestCSIStorageCapacityValidation(t *testing.T) {
	tCtx := ktesting.Init(t)
	server := clustertest.BorrowServer(tCtx, clustertest.Options{})

	for _, tc := range []struct {
		name  string
		pools []string
		want  string // part of the message; empty: accepted
	}{
		{"zero", []string{"0"}, ""},
		{"fraction", []string{"1500m"}, ""},
		{"beyond-int64", []string{"100E"}, ""},
		{"most", slices.Repeat([]string{"1Gi"}, maxPools), ""},
		{"negative", []string{"1Gi", "-1"}, `availableCapacities[1]: Invalid value: "-1": must be greater than or equal to 0`},
		{"too-many", slices.Repeat([]string{"1Gi"}, maxPools+1), `availableCapacities: Too many: 257: must have at most 256 items`},
	} {
		tCtx.Run(tc.name, func(tCtx ktesting.TContext) {
			capacities := server.Client.StorageV1().CSIStorageCapacities(ns)
			_, err := capacities.Create(tCtx, newCapacity("create-"+tc.name, tc.pools...), metav1.CreateOptions{})
			expectInvalid(tCtx, "create", err, tc.want)

			c := createCapacity(tCtx, server.Client, newCapacity("update-"+tc.name, "1Gi"))
			c.AvailableCapacities = quantities(tc.pools...)
			_, err = capacities.Update(tCtx, c, metav1.UpdateOptions{})
			expectInvalid(tCtx, "update", err, tc.want)
			body := must[[]byte](tCtx, "marshal")(json.Marshal(map[string][]string{"availableCapacities": tc.pools}))
			_, err = capacities.Patch(tCtx, c.Name, types.MergePatchType, body, metav1.PatchOptions{})
			expectInvalid(tCtx, "patch", err, tc.want)
			if tc.want != "" {
				expectPools(tCtx, "refused update", getCapacity(tCtx, server.Client, c.Name), "1Gi")
			}
		})
	}
}

// expectInvalid reports an error other than the one of validation that says
// want. An empty want means no error.
func expectInvalid(tCtx ktesting.TContext, step string, err error, want string) {
	tCtx.Helper()
	switch {
	case want == "" && err != nil:
		tCtx.Errorf("%s: %v", step, err)
	case want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want)):
		tCtx.Errorf("%s: got %v, want a validation error that says: %s", step, err, want)
	}
}
