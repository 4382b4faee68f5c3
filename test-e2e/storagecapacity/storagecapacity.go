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

// Package storagecapacity has the specs of KEP-5925, enhanced storage capacity
// tracking: pools in CSIStorageCapacity, reservation of capacity, and rescheduling to
// nodes that have room.
//
// Some specs publish capacity for a storage class of their own that no driver serves.
// They check what the scheduler decides, for any sizes, and run in parallel. The others
// fill the pools of a CSI driver that is installed in the cluster, so they are serial.
// Their volume sizes come from what that driver publishes.
//
// The driver has to be of local storage: one CSIStorageCapacity object for each node.
// Its storage class is found by itself, or is that of the flag --storage.capacity-class.
package storagecapacity

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	e2enode "k8s.io/kubernetes/test/e2e/framework/node"
	e2epod "k8s.io/kubernetes/test/e2e/framework/pod"
	e2epv "k8s.io/kubernetes/test/e2e/framework/pv"
	e2eskipper "k8s.io/kubernetes/test/e2e/framework/skipper"

	"github.com/onsi/ginkgo/v2"
)

const (
	// maxNodes is how many nodes a spec uses, however large the cluster is.
	maxNodes = 3
	// settled is how long a decision has to stay.
	settled = 5 * time.Second
	// poll is how often decisions are looked at.
	poll = 500 * time.Millisecond
)

// someNodes returns the names of up to maxNodes nodes, and skips the spec if there are
// less than it needs.
func someNodes(ctx context.Context, f *framework.Framework, need int) []string {
	ginkgo.GinkgoHelper()
	nodes, err := e2enode.GetBoundedReadySchedulableNodes(ctx, f.ClientSet, maxNodes)
	framework.ExpectNoError(err, "list nodes")
	if len(nodes.Items) < need {
		e2eskipper.Skipf("%d nodes are schedulable, the spec needs %d", len(nodes.Items), need)
	}
	var names []string
	for _, node := range nodes.Items {
		names = append(names, node.Name)
	}
	slices.Sort(names)
	return names
}

// createClaims creates a claim of a storage class for each size.
func createClaims(ctx context.Context, f *framework.Framework, class string, sizes ...resource.Quantity) []*v1.PersistentVolumeClaim {
	ginkgo.GinkgoHelper()
	var claims []*v1.PersistentVolumeClaim
	for _, size := range sizes {
		claim := e2epv.MakePersistentVolumeClaim(e2epv.PersistentVolumeClaimConfig{ClaimSize: size.String(), StorageClassName: &class}, f.Namespace.Name)
		claim, err := e2epv.CreatePVC(ctx, f.ClientSet, f.Namespace.Name, claim)
		framework.ExpectNoError(err, "create claim")
		claims = append(claims, claim)
	}
	return claims
}

// makePod returns a pod with the claims as volumes that can run on the nodes, and on no
// other. So the number of nodes that refuse it is known, whatever else the cluster has.
func makePod(f *framework.Framework, nodes []string, claims ...*v1.PersistentVolumeClaim) *v1.Pod {
	pod := e2epod.MakePod(f.Namespace.Name, nil, claims, f.NamespacePodSecurityLevel, "")
	var selection e2epod.NodeSelection
	for _, node := range nodes {
		e2epod.SetAffinity(&selection, node)
	}
	e2epod.SetNodeSelection(&pod.Spec, selection)
	return pod
}

// createPod creates a pod of makePod.
func createPod(ctx context.Context, f *framework.Framework, nodes []string, claims ...*v1.PersistentVolumeClaim) *v1.Pod {
	ginkgo.GinkgoHelper()
	return create(ctx, f, makePod(f, nodes, claims...))
}

// create creates a pod of makePod to which something was added.
func create(ctx context.Context, f *framework.Framework, pod *v1.Pod) *v1.Pod {
	ginkgo.GinkgoHelper()
	pod, err := f.ClientSet.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	framework.ExpectNoError(err, "create pod")
	return pod
}

// refusal is what the scheduler says of n nodes.
func refusal(n int, reason string) string {
	return fmt.Sprintf("%d %s", n, reason)
}
