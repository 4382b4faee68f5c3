// SPDX-License-Identifier: Apache-2.0

package apifields

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	storagev1ac "k8s.io/client-go/applyconfigurations/storage/v1"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// TestCSIStorageCapacityApply applies availableCapacities with two managers. The
// list is atomic, so one of them owns all of it.
func TestCSIStorageCapacityApply(t *testing.T) {
	tCtx := ktesting.Init(t)
	server := clustertest.BorrowServer(tCtx, clustertest.Options{})
	capacities := server.Client.StorageV1().CSIStorageCapacities(ns)

	config := func(pools ...string) *storagev1ac.CSIStorageCapacityApplyConfiguration {
		return storagev1ac.CSIStorageCapacity("applied", ns).
			WithNodeTopology(metav1ac.LabelSelector().WithMatchLabels(map[string]string{"example.com/node": "applied"})).
			WithStorageClassName("pooled").
			WithCapacity(resource.MustParse("300Gi")).
			WithAvailableCapacities(quantities(pools...)...)
	}
	apply := func(step, manager string, force bool, c *storagev1ac.CSIStorageCapacityApplyConfiguration) *storagev1.CSIStorageCapacity {
		tCtx.Helper()
		return must[*storagev1.CSIStorageCapacity](tCtx, step)(
			capacities.Apply(tCtx, c, metav1.ApplyOptions{FieldManager: manager, Force: force}))
	}

	got := apply("first apply", "first", false, config("100Gi", "20Gi"))
	expectPools(tCtx, "first apply", got, "100Gi", "20Gi")
	expectOwners(tCtx, "first apply", got, "first")

	_, err := capacities.Apply(tCtx, config("100Gi"), metav1.ApplyOptions{FieldManager: "second"})
	if !apierrors.IsConflict(err) {
		tCtx.Errorf("other list by the second manager: %v, want a conflict", err)
	}

	got = apply("same list by the second manager", "second", false, config("100Gi", "20Gi"))
	expectOwners(tCtx, "same list by the second manager", got, "first", "second")

	got = apply("forced list", "second", true, config("50Gi"))
	expectPools(tCtx, "forced list", got, "50Gi")
	expectOwners(tCtx, "forced list", got, "second")

	extracted := must[*storagev1ac.CSIStorageCapacityApplyConfiguration](tCtx, "extract")(
		storagev1ac.ExtractCSIStorageCapacity(got, "second"))
	if diff := cmp.Diff(quantities("50Gi"), extracted.AvailableCapacities); diff != "" {
		tCtx.Errorf("extracted availableCapacities (-want +got):\n%s", diff)
	}

	got = apply("first manager without the list", "first", false, config())
	expectPools(tCtx, "first manager without the list", got, "50Gi")
	got = apply("second manager without the list", "second", false, config())
	expectPools(tCtx, "second manager without the list", got)
	expectOwners(tCtx, "second manager without the list", got)
}

// expectOwners reports managers other than want that own availableCapacities as a
// whole. An owner of single entries does not count: the list is atomic.
func expectOwners(tCtx ktesting.TContext, step string, got *storagev1.CSIStorageCapacity, want ...string) {
	tCtx.Helper()
	var owners []string
	for _, entry := range got.ManagedFields {
		var fields map[string]map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			tCtx.Fatalf("fields of the manager %s: %v", entry.Manager, err)
		}
		if entries, owned := fields["f:availableCapacities"]; owned && len(entries) == 0 {
			owners = append(owners, entry.Manager)
		}
	}
	slices.Sort(owners)
	if diff := cmp.Diff(want, owners); diff != "" {
		tCtx.Errorf("owners of availableCapacities after %s (-want +got):\n%s", step, diff)
	}
}
