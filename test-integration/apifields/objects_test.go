// SPDX-License-Identifier: Apache-2.0

// Package api tests the API of KEP-5925 from outside: what a client of a real
// kube-apiserver sees, and what survives in etcd.
package apifields

import (
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"capacityv2.internal/test-integration/clustertest"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// ns holds every namespaced object of these tests; a server makes it itself.
const ns = metav1.NamespaceDefault

// newCapacity returns a CSIStorageCapacity with pools. No pools means that the
// field is not set.
func newCapacity(name string, pools ...string) *storagev1.CSIStorageCapacity {
	return &storagev1.CSIStorageCapacity{
		ObjectMeta:          metav1.ObjectMeta{Name: name, Namespace: ns},
		NodeTopology:        &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/node": name}},
		StorageClassName:    "pooled",
		Capacity:            new(resource.MustParse("300Gi")),
		MaximumVolumeSize:   new(resource.MustParse("100Gi")),
		AvailableCapacities: quantities(pools...),
	}
}

// newDriver returns a CSIDriver. rebuilding may be nil: not set.
func newDriver(name string, rebuilding *bool) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.CSIDriverSpec{
			StorageCapacity:  new(true),
			VolumeRebuilding: rebuilding,
		},
	}
}

func quantities(values ...string) []resource.Quantity {
	var list []resource.Quantity
	for _, v := range values {
		list = append(list, resource.MustParse(v))
	}
	return list
}

// pools returns the entries as an administrator reads them.
func pools(c *storagev1.CSIStorageCapacity) []string {
	var values []string
	for _, q := range c.AvailableCapacities {
		values = append(values, q.String())
	}
	return values
}

// show returns the value behind p for a message.
func show(p *bool) string {
	switch {
	case p == nil:
		return "unset"
	case *p:
		return "true"
	}
	return "false"
}
