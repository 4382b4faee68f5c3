// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"fmt"
	"slices"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// TestMalformedObjects: etcd may hold objects that no API server would take today. The scheduler reads
// less than nothing as nothing, as many pools as there are, and numbers without end as the largest, and
// goes on.
func TestMalformedObjects(t *testing.T) {
	clustertest.ForAnyPolicy(t, func(t *testing.T, options clustertest.Options) {
		c := clustertest.StartWith(ktesting.Init(t), options)
		// No driver serves the class: the decision is all that there is to see.
		const stored = "stored"
		c.CreateUnserved(stored, stored+".example.com")
		for i, object := range []storagev1.CSIStorageCapacity{
			{AvailableCapacities: []resource.Quantity{resource.MustParse("-100Gi"), resource.MustParse("-1")}},
			{Capacity: new(resource.MustParse("-1")), MaximumVolumeSize: new(resource.MustParse("-100Gi"))},
			{AvailableCapacities: []resource.Quantity{resource.MustParse("100Gi")}, MaximumVolumeSize: new(resource.MustParse("-1"))},
			{AvailableCapacities: append(slices.Repeat([]resource.Quantity{resource.MustParse("1Gi")}, 300), resource.MustParse("50Gi"))},
			{AvailableCapacities: []resource.Quantity{resource.MustParse("100m"), resource.MustParse("1e40")}},
		} {
			object.Name, object.StorageClassName = fmt.Sprintf("object-%d", i), stored
			node := fmt.Sprintf("stored-%d", i)
			object.NodeTopology = &metav1.LabelSelector{MatchLabels: clustertest.OnNode(node)}
			c.CreateNode(node, clustertest.OnNode(node))
			c.StoreCapacity(&object)
		}
		c.CreateNodes(1)
		driver := c.StartDriver(local([]int64{100}))

		onNode := func(i int) clustertest.Pod {
			node := fmt.Sprintf("stored-%d", i)
			return clustertest.Pod{Name: "on-" + node, Class: stored, Sizes: []string{"50Gi"}, NodeSelector: clustertest.OnNode(node)}
		}
		for _, i := range []int{0, 1, 2} {
			c.CreatePod(onNode(i))
			c.ExpectNoRoom(onNode(i).Name, 1)
		}
		for _, i := range []int{3, 4} {
			c.CreatePod(onNode(i))
			c.ExpectSelected(onNode(i).Name+"-0", fmt.Sprintf("stored-%d", i))
		}
		c.CreatePod(clustertest.Pod{Name: "ordinary", Class: class, Sizes: []string{"50Gi"}})
		c.ExpectNode("ordinary", "node-1")
		c.ExpectNoFailures(driver)
	})
}
