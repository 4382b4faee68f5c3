// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// TestClaimsOfATenant: the owner of a claim writes its selected node. The claim is never provisioned, because it has a selector,
// and keeps nobody off the node.
func TestClaimsOfATenant(t *testing.T) {
	clustertest.ForAnyPolicy(t, func(t *testing.T, options clustertest.Options) {
		c := clustertest.StartWith(ktesting.Init(t), options)
		c.CreateNodes(1)
		config := unpublished([]int64{100})
		config.Confirming = true
		config.BeforeCreate = func(_ context.Context, claim string) error {
			if claim == "huge" || claim == "all" {
				return errors.New("claim Selector is not supported")
			}
			return nil
		}
		driver := c.StartDriver(config)
		// Before its first decision, a scheduler believes what others have sent.
		c.CreatePod(clustertest.Pod{Name: "first", Class: class, Sizes: []string{"1Gi"}})
		c.ExpectNode("first", "node-1")
		driver.Publish()
		for name, size := range map[string]string{"huge": "8191Pi", "all": "100Gi"} {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{selectedNode: "node-1"}}}
			claim.Spec = corev1.PersistentVolumeClaimSpec{
				StorageClassName: new(class),
				AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
				Selector:         &metav1.LabelSelector{},
			}
			_, err := c.Client().CoreV1().PersistentVolumeClaims(c.Namespace).Create(c, claim, metav1.CreateOptions{})
			c.ExpectNoError(err, "create claim")
			c.WaitForClaim(name)
		}
		c.CreatePod(clustertest.Pod{Name: "second", Class: class, Sizes: []string{"50Gi"}})
		c.ExpectNode("second", "node-1")
		c.ExpectNoFailures(driver)
	})
}

const selectedNode = "volume.kubernetes.io/selected-node"

// TestTwoPublishers: while one publisher takes over from another, two objects are for one node. What
// was decided is in flight in both, until each shows it.
func TestTwoPublishers(t *testing.T) {
	clustertest.ForAnyPolicy(t, func(t *testing.T, options clustertest.Options) {
		c := clustertest.StartWith(ktesting.Init(t), options)
		c.CreateNodes(1)
		driver := c.StartDriver(unpublished([]int64{100}))
		for _, name := range []string{"a-before-all-others", "z-behind-all-others"} {
			_, err := c.Client().StorageV1().CSIStorageCapacities(modeldriver.Namespace).Create(c, &storagev1.CSIStorageCapacity{
				ObjectMeta:       metav1.ObjectMeta{Name: name},
				StorageClassName: class,
				NodeTopology:     &metav1.LabelSelector{MatchLabels: clustertest.OnNode("node-1")},
				Capacity:         new(resource.MustParse("100Gi")),
			}, metav1.CreateOptions{})
			c.ExpectNoError(err, "create object of the other publisher")
		}
		c.CreatePod(clustertest.Pod{Name: "first", Class: class, Sizes: []string{"60Gi"}})
		c.ExpectNode("first", "node-1")
		c.CreatePod(clustertest.Pod{Name: "second", Class: class, Sizes: []string{"60Gi"}})
		c.ExpectReason("second", 1, clustertest.Reserved)
		c.Stays(func(context.Context) error { return c.HasReason("second", 1, clustertest.Reserved) })
		c.ExpectNoFailures(driver)
	})
}
