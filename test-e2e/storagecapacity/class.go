// SPDX-License-Identifier: Apache-2.0

/*
Copyright The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package storagecapacity

import (
	"context"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/utils/ptr"

	"github.com/onsi/ginkgo/v2"
)

// ownClass is a storage class that no driver serves: the spec publishes its capacity,
// and the scheduler's decisions stay as they are, because no volume comes.
type ownClass struct {
	f *framework.Framework
	// name is that of the class and of its CSIDriver.
	name string
	// nodes can run the pods of the spec.
	nodes []string
	// published has the objects by node.
	published map[string]*storagev1.CSIStorageCapacity
}

// newOwnClass is newNamedClass for the only class of a spec.
func newOwnClass(ctx context.Context, f *framework.Framework, needNodes int) *ownClass {
	ginkgo.GinkgoHelper()
	return newNamedClass(ctx, f, "csi", needNodes)
}

// newNamedClass creates a storage class without capacity, and its CSIDriver. The name is
// a part of theirs, which no other spec has.
func newNamedClass(ctx context.Context, f *framework.Framework, name string, needNodes int) *ownClass {
	ginkgo.GinkgoHelper()
	o := &ownClass{f: f, name: f.UniqueName + "." + name + ".example.com", nodes: someNodes(ctx, f, needNodes), published: map[string]*storagev1.CSIStorageCapacity{}}
	drivers, classes := f.ClientSet.StorageV1().CSIDrivers(), f.ClientSet.StorageV1().StorageClasses()
	_, err := drivers.Create(ctx, &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: o.name},
		Spec:       storagev1.CSIDriverSpec{StorageCapacity: ptr.To(true), AttachRequired: ptr.To(false)},
	}, metav1.CreateOptions{})
	framework.ExpectNoError(err, "create CSIDriver")
	ginkgo.DeferCleanup(framework.IgnoreNotFound(drivers.Delete), o.name, metav1.DeleteOptions{})
	_, err = classes.Create(ctx, &storagev1.StorageClass{
		ObjectMeta:        metav1.ObjectMeta{Name: o.name},
		Provisioner:       o.name,
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
	}, metav1.CreateOptions{})
	framework.ExpectNoError(err, "create StorageClass")
	ginkgo.DeferCleanup(framework.IgnoreNotFound(classes.Delete), o.name, metav1.DeleteOptions{})
	return o
}

// publish creates or updates the capacity of a node: its sum, and its pools.
func (o *ownClass) publish(ctx context.Context, node, capacity string, pools ...string) {
	ginkgo.GinkgoHelper()
	objects := o.f.ClientSet.StorageV1().CSIStorageCapacities(o.f.Namespace.Name)
	object := o.published[node]
	if object == nil {
		object = &storagev1.CSIStorageCapacity{
			ObjectMeta:       metav1.ObjectMeta{GenerateName: "pools-"},
			StorageClassName: o.name,
			NodeTopology:     &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelHostname: o.hostname(ctx, node)}},
		}
	}
	object.Capacity, object.AvailableCapacities = ptr.To(resource.MustParse(capacity)), quantities(pools...)
	var err error
	if object.Name == "" {
		object, err = objects.Create(ctx, object, metav1.CreateOptions{})
	} else {
		object, err = objects.Update(ctx, object, metav1.UpdateOptions{})
	}
	framework.ExpectNoError(err, "publish the capacity of node %s", node)
	o.published[node] = object
}

// hostname returns the label of a node, which may differ from its name.
func (o *ownClass) hostname(ctx context.Context, node string) string {
	ginkgo.GinkgoHelper()
	object, err := o.f.ClientSet.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	framework.ExpectNoError(err, "get node")
	return object.Labels[v1.LabelHostname]
}

// publishAll publishes the same capacity for all nodes of the spec.
func (o *ownClass) publishAll(ctx context.Context, capacity string, pools ...string) {
	ginkgo.GinkgoHelper()
	for _, node := range o.nodes {
		o.publish(ctx, node, capacity, pools...)
	}
}

func (o *ownClass) createClaims(ctx context.Context, sizes ...string) []*v1.PersistentVolumeClaim {
	ginkgo.GinkgoHelper()
	return createClaims(ctx, o.f, o.name, quantities(sizes...)...)
}

func (o *ownClass) createPod(ctx context.Context, claims ...*v1.PersistentVolumeClaim) *v1.Pod {
	ginkgo.GinkgoHelper()
	return createPod(ctx, o.f, o.nodes, claims...)
}

func quantities(sizes ...string) []resource.Quantity {
	var all []resource.Quantity
	for _, size := range sizes {
		all = append(all, resource.MustParse(size))
	}
	return all
}
