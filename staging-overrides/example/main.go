// SPDX-License-Identifier: Apache-2.0

// Command example is a module outside of the tree that builds against the new
// API: the part of a CSI driver's deployment that announces what it can do.
// It prints the objects instead of sending them.
package main

import (
	"encoding/json"
	"log"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagev1ac "k8s.io/client-go/applyconfigurations/storage/v1"
)

func main() {
	// What the driver answers, and external-provisioner publishes.
	answer := csi.GetCapacityResponse{AvailableCapacities: []int64{100 << 30, 20 << 30}}
	var pools []resource.Quantity
	for _, bytes := range answer.GetAvailableCapacities() {
		pools = append(pools, *resource.NewQuantity(bytes, resource.BinarySI))
	}

	rebuilding := true
	driver := storagev1.CSIDriver{
		TypeMeta:   metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "CSIDriver"},
		ObjectMeta: metav1.ObjectMeta{Name: "pools.example.com"},
		Spec:       storagev1.CSIDriverSpec{VolumeRebuilding: &rebuilding},
	}
	capacity := storagev1.CSIStorageCapacity{
		TypeMeta:            metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "CSIStorageCapacity"},
		ObjectMeta:          metav1.ObjectMeta{Name: "node-1", Namespace: "default"},
		StorageClassName:    "pools",
		AvailableCapacities: pools,
	}
	objects := []any{
		driver,
		storagev1ac.CSIDriver(driver.Name).WithSpec(storagev1ac.CSIDriverSpec().WithVolumeRebuilding(rebuilding)),
		capacity,
		storagev1ac.CSIStorageCapacity(capacity.Name, capacity.Namespace).
			WithStorageClassName(capacity.StorageClassName).
			WithAvailableCapacities(pools...),
	}
	out := json.NewEncoder(os.Stdout)
	for _, object := range objects {
		if err := out.Encode(object); err != nil {
			log.Fatal(err)
		}
	}
}
