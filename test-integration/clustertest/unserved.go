// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
)

// CreateUnserved creates a CSIDriver whose capacity is checked, and a storage class of it. Nobody
// provisions it.
func (c *Cluster) CreateUnserved(class, driver string) {
	c.Helper()
	_, err := c.Client().StorageV1().CSIDrivers().Create(c, &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: driver},
		Spec:       storagev1.CSIDriverSpec{StorageCapacity: new(true)},
	}, metav1.CreateOptions{})
	c.ExpectNoError(err, "create CSIDriver")
	c.CreateClass(class, driver)
}

// ExpectSelected waits until the scheduler has selected a node for a claim.
func (c *Cluster) ExpectSelected(claim, node string) {
	c.Helper()
	c.Eventually(func(context.Context) error {
		if got := c.Claim(claim).Annotations[storagehelpers.AnnSelectedNode]; got != node {
			return fmt.Errorf("claim %s: selected node %q, want %q", claim, got, node)
		}
		return nil
	})
}
