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
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/test/e2e/framework"
	e2econfig "k8s.io/kubernetes/test/e2e/framework/config"
	e2enode "k8s.io/kubernetes/test/e2e/framework/node"
	e2eskipper "k8s.io/kubernetes/test/e2e/framework/skipper"
	"k8s.io/utils/ptr"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

var className = e2econfig.Flags.String("storage.capacity-class", "", "name of the storage class with WaitForFirstConsumer of a CSI driver for local storage whose capacity is tracked; if it is empty, the oldest one without parameters is used")

// testDriver is an installed CSI driver for local storage. The spec that uses it is the
// only one that does.
type testDriver struct {
	f      *framework.Framework
	object *storagev1.CSIDriver
	class  *storagev1.StorageClass
	// nodes are those that the pods of the spec can use, sorted.
	nodes []string
	// atFirst is what was published before the spec used anything.
	atFirst map[string][]int64
}

// newTestDriver finds a driver and waits until nobody changes what its nodes publish. At
// the end of the spec it removes all volumes, and waits until the nodes publish the same
// again.
func newTestDriver(ctx context.Context, f *framework.Framework, needNodes int) *testDriver {
	ginkgo.GinkgoHelper()
	d := &testDriver{f: f}
	d.findClass(ctx)
	d.findNodes(ctx, needNodes)
	d.waitQuiet(ctx)
	d.atFirst = d.pools(ctx)
	// The API server sets the field where the feature is on.
	if d.object.Spec.VolumeRebuilding != nil && !d.publishesPools(ctx) {
		e2eskipper.Skipf("driver %s publishes no pools", d.object.Name)
	}
	ginkgo.DeferCleanup(d.release)
	return d
}

// findClass sets the storage class and the CSIDriver.
func (d *testDriver) findClass(ctx context.Context) {
	ginkgo.GinkgoHelper()
	client := d.f.ClientSet.StorageV1()
	drivers, err := client.CSIDrivers().List(ctx, metav1.ListOptions{})
	framework.ExpectNoError(err, "list CSIDrivers")
	classes, err := client.StorageClasses().List(ctx, metav1.ListOptions{})
	framework.ExpectNoError(err, "list StorageClasses")
	capacities, err := client.CSIStorageCapacities(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	framework.ExpectNoError(err, "list CSIStorageCapacities")
	slices.SortFunc(classes.Items, func(a, b storagev1.StorageClass) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	for _, class := range classes.Items {
		driver := slices.IndexFunc(drivers.Items, func(driver storagev1.CSIDriver) bool {
			return driver.Name == class.Provisioner && driver.Spec.StorageCapacity != nil && *driver.Spec.StorageCapacity
		})
		published := slices.ContainsFunc(capacities.Items, func(c storagev1.CSIStorageCapacity) bool { return c.StorageClassName == class.Name })
		waits := class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
		wanted := class.Name == *className || *className == "" && len(class.Parameters) == 0
		if wanted && waits && driver >= 0 && published {
			d.class, d.object = &class, &drivers.Items[driver]
			framework.Logf("Testing driver %s with StorageClass %s", d.object.Name, d.class.Name)
			return
		}
	}
	if *className != "" {
		framework.Failf("StorageClass %s is not one with WaitForFirstConsumer of a CSI driver whose capacity is published", *className)
	}
	e2eskipper.Skipf("no StorageClass with WaitForFirstConsumer of a CSI driver whose capacity is published")
}

// findNodes sets up to maxNodes nodes that can be used and publish capacity, and skips the
// spec if there are less than it needs.
func (d *testDriver) findNodes(ctx context.Context, need int) {
	ginkgo.GinkgoHelper()
	nodes, err := e2enode.GetReadySchedulableNodes(ctx, d.f.ClientSet)
	framework.ExpectNoError(err, "list nodes")
	published, err := d.capacities(ctx)
	framework.ExpectNoError(err, "get the capacity of driver %s", d.object.Name)
	for _, node := range nodes.Items {
		if _, ok := published[node.Name]; ok && len(d.nodes) < maxNodes {
			d.nodes = append(d.nodes, node.Name)
		}
	}
	slices.Sort(d.nodes)
	if len(d.nodes) < need {
		e2eskipper.Skipf("%d nodes have storage of driver %s, the spec needs %d", len(d.nodes), d.object.Name, need)
	}
}

// capacities returns the objects of the class by node. Those that several nodes share are
// left out.
func (d *testDriver) capacities(ctx context.Context) (map[string]storagev1.CSIStorageCapacity, error) {
	nodes, err := d.f.ClientSet.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	list, err := d.f.ClientSet.StorageV1().CSIStorageCapacities(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	byNode := map[string]storagev1.CSIStorageCapacity{}
	for _, object := range list.Items {
		if object.StorageClassName != d.class.Name || object.NodeTopology == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(object.NodeTopology)
		if err != nil {
			return nil, err
		}
		var selected []string
		for _, node := range nodes.Items {
			if selector.Matches(labels.Set(node.Labels)) {
				selected = append(selected, node.Name)
			}
		}
		if len(selected) == 1 {
			byNode[selected[0]] = object
		}
	}
	return byNode, nil
}

// getPools returns what is left of the pools of each node, the largest first. A driver
// that publishes no pools has one, from which a volume of the maximum size can be taken.
func (d *testDriver) getPools(ctx context.Context) (map[string][]int64, error) {
	objects, err := d.capacities(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string][]int64{}
	for _, node := range d.nodes {
		object, ok := objects[node]
		if !ok {
			return nil, fmt.Errorf("no capacity of node %s is published", node)
		}
		pools := poolsOf(object)
		switch {
		case len(pools) > 0:
		case object.MaximumVolumeSize != nil:
			pools = []int64{object.MaximumVolumeSize.Value()}
		case object.Capacity != nil:
			pools = []int64{object.Capacity.Value()}
		default:
			return nil, fmt.Errorf("the capacity of node %s is empty", node)
		}
		slices.SortFunc(pools, func(a, b int64) int { return cmp.Compare(b, a) })
		all[node] = pools
	}
	return all, nil
}

// pools is getPools where an error ends the spec.
func (d *testDriver) pools(ctx context.Context) map[string][]int64 {
	ginkgo.GinkgoHelper()
	pools, err := d.getPools(ctx)
	framework.ExpectNoError(err, "get the pools of driver %s", d.object.Name)
	return pools
}

// published returns all numbers that a node publishes.
func (d *testDriver) published(ctx context.Context, node string) string {
	ginkgo.GinkgoHelper()
	objects, err := d.capacities(ctx)
	framework.ExpectNoError(err, "get the capacity of driver %s", d.object.Name)
	o := objects[node]
	return fmt.Sprintf("capacity %v, maximum volume size %v, pools %v", o.Capacity, o.MaximumVolumeSize, poolsOf(o))
}

func poolsOf(object storagev1.CSIStorageCapacity) []int64 {
	var pools []int64
	for _, pool := range object.AvailableCapacities {
		pools = append(pools, pool.Value())
	}
	return pools
}

func (d *testDriver) publishesPools(ctx context.Context) bool {
	ginkgo.GinkgoHelper()
	objects, err := d.capacities(ctx)
	framework.ExpectNoError(err, "get the capacity of driver %s", d.object.Name)
	return !slices.ContainsFunc(d.nodes, func(node string) bool { return len(objects[node].AvailableCapacities) == 0 })
}

// largestVolume returns the size of the largest volume for which each node has room.
func (d *testDriver) largestVolume() resource.Quantity {
	size := d.atFirst[d.nodes[0]][0]
	for _, pools := range d.atFirst {
		size = min(size, pools[0])
	}
	return bytes(size)
}

// smallestPool returns the size of the smallest pool of all nodes.
func (d *testDriver) smallestPool() int64 {
	size := d.atFirst[d.nodes[0]][0]
	for _, pools := range d.atFirst {
		size = min(size, slices.Min(pools))
	}
	return size
}

func bytes(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.BinarySI) }

// leaving returns a volume of the driver that is being deleted, or "".
func (d *testDriver) leaving(ctx context.Context) (string, error) {
	core := d.f.ClientSet.CoreV1()
	volumes, err := core.PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	for _, volume := range volumes.Items {
		if volume.Spec.CSI == nil || volume.Spec.CSI.Driver != d.object.Name {
			continue
		}
		if volume.DeletionTimestamp != nil || volume.Status.Phase != v1.VolumeBound {
			return volume.Name, nil
		}
		ref := volume.Spec.ClaimRef
		namespace, err := core.Namespaces().Get(ctx, ref.Namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && namespace.DeletionTimestamp != nil {
			return volume.Name, nil
		}
		if err != nil {
			return "", err
		}
		claim, err := core.PersistentVolumeClaims(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && claim.DeletionTimestamp != nil {
			return volume.Name, nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", nil
}

// waitQuiet waits until no volume is leaving, and what is published stays the same.
func (d *testDriver) waitQuiet(ctx context.Context) {
	ginkgo.GinkgoHelper()
	const unchanged = 3 * time.Second
	var last map[string][]int64
	var since time.Time
	gomega.Eventually(ctx, framework.HandleRetry(func(ctx context.Context) (string, error) {
		pools, err := d.getPools(ctx)
		if err != nil {
			return err.Error(), nil
		}
		volume, err := d.leaving(ctx)
		if err != nil {
			return "", err
		}
		if volume != "" || !maps.EqualFunc(pools, last, slices.Equal) {
			last, since = pools, time.Now()
		}
		if volume != "" {
			return fmt.Sprintf("volume %s is being deleted", volume), nil
		}
		if time.Since(since) < unchanged {
			return fmt.Sprintf("capacity has changed less than %s ago: %v", unchanged, pools), nil
		}
		return "", nil
	})).WithTimeout(d.f.Timeouts.PodStartShort).WithPolling(poll).Should(gomega.BeEmpty(), "what changes the capacity of driver %s", d.object.Name)
}

// release removes the pods and the volumes of the spec.
func (d *testDriver) release(ctx context.Context) {
	ns := d.f.Namespace.Name
	all := metav1.ListOptions{}
	background := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
	core := d.f.ClientSet.CoreV1()
	framework.ExpectNoError(d.f.ClientSet.AppsV1().Deployments(ns).DeleteCollection(ctx, background, all))
	framework.ExpectNoError(core.Pods(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, all))
	// First the pods: a driver refuses to delete volumes that are in use, and is asked again
	// only after a while.
	gomega.Eventually(ctx, framework.ListObjects(core.Pods(ns).List, all)).WithTimeout(d.f.Timeouts.PodDelete).WithPolling(poll).
		Should(gomega.HaveField("Items", gomega.BeEmpty()))
	framework.ExpectNoError(core.PersistentVolumeClaims(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, all))
	gomega.Eventually(ctx, framework.HandleRetry(func(ctx context.Context) ([]string, error) {
		volumes, err := core.PersistentVolumes().List(ctx, all)
		if err != nil {
			return nil, err
		}
		var left []string
		for _, volume := range volumes.Items {
			if volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.Namespace == ns {
				left = append(left, volume.Name)
			}
		}
		return left, nil
	})).WithTimeout(d.f.Timeouts.PVReclaim).WithPolling(poll).Should(gomega.BeEmpty(), "volumes that are left")
	// The object of a node may be about to be created again.
	gomega.Eventually(ctx, d.getPools).WithTimeout(d.f.Timeouts.PodStartShort).WithPolling(poll).
		Should(gomega.Equal(d.atFirst), "what the nodes publish without the volumes of the spec")
}
