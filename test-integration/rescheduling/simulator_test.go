// SPDX-License-Identifier: Apache-2.0

package rescheduling

import (
	"context"
	"errors"
	"fmt"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// TestSimulatedRebuild: two pods of a drained node, with a volume each that has to be rebuilt, wait for a node that does not exist,
// with room for one. An autoscaler is told that either fits, and not that both do not. Those with new volumes count.
func TestSimulatedRebuild(t *testing.T) { clustertest.ForAnyPolicy(t, testSimulatedRebuild) }

func testSimulatedRebuild(t *testing.T, options clustertest.Options) {
	c := start(t, options)
	createNodes(c, 1)
	driver := c.StartDriver(local([]int64{200}))
	var pods []clustertest.Pod
	for i := range 2 {
		pod := clustertest.Pod{Name: fmt.Sprintf("app-%d", i), Claims: []string{fmt.Sprintf("data-app-%d", i)}}
		pods = append(pods, pod)
		c.CreateClaim(pod.Claims[0], class, "100Gi")
		c.CreatePod(pod)
		c.ExpectNode(pod.Name, "node-1")
	}
	drain(c)
	for _, pod := range pods {
		c.CreatePod(pod)
	}
	c.CreatePod(clustertest.Pod{Name: "new", Class: class, Sizes: []string{"100Gi"}})
	c.CreatePod(clustertest.Pod{Name: "large", Class: class, Sizes: []string{"101Gi"}})
	for _, pod := range pods {
		c.Eventually(func(context.Context) error {
			if c.Volume(pod.Claims[0]).Spec.NodeAffinity != nil {
				return errors.New("the driver has not released the volume")
			}
			return nil
		})
	}
	_, err := c.Client().StorageV1().CSIStorageCapacities(modeldriver.Namespace).Create(c, &storagev1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{Name: "template-nodes"}, StorageClassName: class,
		NodeTopology: &metav1.LabelSelector{MatchLabels: clustertest.TemplateNodes},
		Capacity:     new(resource.MustParse("100Gi")), MaximumVolumeSize: new(resource.MustParse("100Gi")),
		AvailableCapacities: []resource.Quantity{resource.MustParse("100Gi")},
	}, metav1.CreateOptions{})
	c.ExpectNoError(err, "create the object for template nodes")

	s := c.NewSimulator("template")
	s.ExpectRefused("large", "template", clustertest.NoRoom)
	s.Place("new", "template")
	s.ExpectRefused(pods[0].Name, "template", clustertest.NoRoom)
	s.Revert()
	s.Place(pods[0].Name, "template")
	s.ExpectFits(pods[1].Name, "template") // a limit: there is room for one
	s.ExpectFits("new", "template")
	expectVolumes(c, driver, 2)
}
