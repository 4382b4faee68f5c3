// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes/scheme"
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

// StoreCapacity writes a capacity object of the default namespace to etcd, which no API server
// has looked at: another version may have left it there. It must not exist yet.
func (c *Cluster) StoreCapacity(object *storagev1.CSIStorageCapacity) {
	c.Helper()
	object.TypeMeta = metav1.TypeMeta{APIVersion: storagev1.SchemeGroupVersion.String(), Kind: "CSIStorageCapacity"}
	object.Namespace, object.UID, object.CreationTimestamp = metav1.NamespaceDefault, uuid.NewUUID(), metav1.NewTime(time.Now())
	var message bytes.Buffer
	c.ExpectNoError(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, &message), "encode the object")
	key := path.Join("/", c.server.Prefix, "csistoragecapacities", object.Namespace, object.Name)
	_, err := c.server.Etcd.Put(c, key, message.String())
	c.ExpectNoError(err, "write the object to etcd")
	c.unseen = true
}
