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
	"slices"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/e2e/framework"
	e2epod "k8s.io/kubernetes/test/e2e/framework/pod"
	e2epv "k8s.io/kubernetes/test/e2e/framework/pv"
	"k8s.io/kubernetes/test/e2e/storage/utils"
	admissionapi "k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// What users of drivers for local storage have reported, in the sizes of the driver that is
// here. Without the feature, each spec fails, because a claim is sent where there is no room for
// it. With the budget, that is before the drain: one number does not tell what all pools of a node hold.
// docs/explanation/compared.md has the reports.
var _ = utils.SIGDescribe("CSIStorageCapacity complaints", framework.WithFeatureGate(features.CSIStorageCapacityV2), func() {
	f := framework.NewDefaultFramework("capacity-complaints")
	f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

	// https://github.com/kubernetes/kubernetes/issues/133121
	ginkgo.It("should not let an ephemeral volume take the room of a claim of its pod", framework.WithSerial(), func(ctx context.Context) {
		d := newTestDriver(ctx, f, 1)
		var sizes []resource.Quantity
		for _, pool := range d.atFirst[d.nodes[0]] {
			sizes = append(sizes, bytes(pool))
		}
		claims := d.createClaims(ctx, sizes...)
		// There is room for each volume, and for all claims together, but then for nothing else.
		refused := create(ctx, f, withEphemeral(makePod(f, d.nodes, claims...), d.class.Name, bytes(d.smallestPool()/4)))
		expectRefused(ctx, f, refused, refusal(len(d.nodes), notEnoughSpace))
		framework.ExpectNoError(e2epod.DeletePodWithWait(ctx, f.ClientSet, refused))

		last := len(sizes) - 1
		d.waitRunning(ctx, create(ctx, f, withEphemeral(makePod(f, d.nodes, claims[:last]...), d.class.Name, sizes[last])))
		d.expectNoFailedProvisioning(ctx)
	})

	// https://github.com/topolvm/topolvm/issues/117
	ginkgo.It("should start as many of five pods with ephemeral volumes on a node as there is room for", framework.WithSerial(), func(ctx context.Context) {
		d := newTestDriver(ctx, f, 1)
		node := d.nodes[0]
		size, room := d.share(node, 3, 10)
		var pods []*v1.Pod
		for range room + 2 {
			pods = append(pods, create(ctx, f, withEphemeral(makePod(f, []string{node}), d.class.Name, size)))
		}
		expectSplit(ctx, f, pods, room, refusal(1, notEnoughSpace))
		d.waitRunningPods(ctx, room)
		d.expectNoFailedProvisioning(ctx)
	})

	// https://github.com/hwameistor/hwameistor/issues/1425
	ginkgo.It("should send no more of four pods to the node that they prefer than the three for which it has room", framework.WithSerial(), func(ctx context.Context) {
		d := newTestDriver(ctx, f, 2)
		preferred := d.nodes[0]
		size, room := d.share(preferred, 6, 20)
		var pods []*v1.Pod
		for _, claim := range d.createClaims(ctx, slices.Repeat([]resource.Quantity{size}, room+1)...) {
			pods = append(pods, create(ctx, f, preferring(makePod(f, d.nodes, claim), preferred)))
		}
		there := 0
		for _, pod := range pods {
			if d.waitRunning(ctx, pod).Spec.NodeName == preferred {
				there++
			}
		}
		// They may be fewer: a volume that is on its way may be in any of the pools.
		gomega.Expect(there).To(gomega.And(gomega.BeNumerically(">", 0), gomega.BeNumerically("<=", room)), "pods on node %s", preferred)
		d.expectNoFailedProvisioning(ctx)
	})

	// https://github.com/alibaba/open-local/issues/158
	ginkgo.It("should send pods with claims in two volume groups to nodes with room in both", func(ctx context.Context) {
		data, logs := newNamedClass(ctx, f, "data", 3), newNamedClass(ctx, f, "logs", 3)
		data.publishAll(ctx, "1700Gi", "1700Gi")
		logs.publishAll(ctx, "560Gi", "560Gi")
		var pods []*v1.Pod
		for range len(data.nodes) + 1 {
			claims := append(data.createClaims(ctx, "1000Gi"), logs.createClaims(ctx, "100Gi")...)
			pods = append(pods, create(ctx, f, preferring(makePod(f, data.nodes, claims...), data.nodes[0])))
		}
		expectSplit(ctx, f, pods, len(data.nodes), refusal(len(data.nodes), capacityReserved))

		decisions, err := decisionsFor(f, pods...)(ctx)
		framework.ExpectNoError(err, "get decisions")
		var nodes []string
		for _, d := range decisions {
			gomega.Expect(d.selected).To(gomega.HaveEach(d.selected[0]), "nodes to which the claims of one pod were sent")
			if d.selected[0] != "" {
				nodes = append(nodes, d.selected[0])
			}
		}
		gomega.Expect(nodes).To(gomega.ConsistOf(data.nodes), "nodes of the pods")
	})

	// https://github.com/longhorn/longhorn/issues/8753
	ginkgo.It("should move the pods of a drained node one by one under a PodDisruptionBudget, as soon as there is room", framework.WithFeatureGate(features.MutablePVNodeAffinity), framework.WithSerial(), framework.WithDisruptive(), func(ctx context.Context) {
		d := newRebuildingDriver(ctx, f, 2)
		size, home := bytes(d.smallestPool()), d.nodes[0]
		others, users := d.fillOthers(ctx, size, home)
		first := startDatabase(ctx, d, "first", d.class.Name, size)
		second := startDatabase(ctx, d, "second", d.class.Name, size)
		gomega.Expect([]string{first.home, second.home}).To(gomega.HaveEach(home), "nodes of the pods")
		createBudget(ctx, f, "first", "second")

		moving := first.drain(ctx, home)
		expectRefusedAfter(ctx, f, moving, home, refusal(len(others), notEnoughSpace), refusal(1, unschedulableNodes))
		staying := second.pod(ctx, "")
		err := evict(ctx, f, staying)
		gomega.Expect(apierrors.IsTooManyRequests(err)).To(gomega.BeTrueBecause("one of the pods has to run, got: %v", err))
		gomega.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("Cannot evict pod as it would violate the pod's disruption budget")))

		ginkgo.By("making room on node " + others[0])
		d.remove(ctx, users[0])
		first.expectOn(ctx, moving, others[0])
		// As kubectl drain does.
		gomega.Eventually(ctx, func(ctx context.Context) error { return evict(ctx, f, staying) }).
			WithTimeout(f.Timeouts.PodStartShort).WithPolling(poll).Should(gomega.Succeed(), "evict the other pod")
		second.expectOn(ctx, second.pod(ctx, staying.UID), others[0])
		first.expectRescheduled(ctx, 2)
		d.expectNoFailedProvisioning(ctx)
	})
})

// share returns the size of a volume that takes part/whole of the capacity of an empty node,
// and for how many of them the pools of the node have room.
func (d *testDriver) share(node string, part, whole int64) (size resource.Quantity, room int) {
	var capacity int64
	for _, pool := range d.atFirst[node] {
		capacity += pool
	}
	volume := capacity * part / whole
	for _, pool := range d.atFirst[node] {
		room += int(pool / volume)
	}
	return bytes(volume), room
}

// withEphemeral adds a generic ephemeral volume to a pod.
func withEphemeral(pod *v1.Pod, class string, size resource.Quantity) *v1.Pod {
	const name = "ephemeral"
	claim := e2epv.MakePersistentVolumeClaim(e2epv.PersistentVolumeClaimConfig{ClaimSize: size.String(), StorageClassName: &class}, pod.Namespace)
	pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: name, VolumeSource: v1.VolumeSource{
		Ephemeral: &v1.EphemeralVolumeSource{VolumeClaimTemplate: &v1.PersistentVolumeClaimTemplate{Spec: claim.Spec}},
	}})
	container := &pod.Spec.Containers[0]
	container.VolumeMounts = append(container.VolumeMounts, v1.VolumeMount{Name: name, MountPath: "/mnt/" + name})
	return pod
}

// preferring makes a pod of makePod prefer a node, so that a burst of such pods goes there
// as long as the scheduler takes it to have room.
func preferring(pod *v1.Pod, node string) *v1.Pod {
	affinity := pod.Spec.Affinity.NodeAffinity
	affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution, v1.PreferredSchedulingTerm{
		Weight:     100,
		Preference: v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{node}}}},
	})
	return pod
}

// createBudget creates a PodDisruptionBudget that lets one of the databases with these names
// be evicted at a time, and waits until it does.
func createBudget(ctx context.Context, f *framework.Framework, databases ...string) {
	ginkgo.GinkgoHelper()
	budgets := f.ClientSet.PolicyV1().PodDisruptionBudgets(f.Namespace.Name)
	budget, err := budgets.Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "databases"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(int32(len(databases) - 1))),
			Selector:     &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: databases}}},
		},
	}, metav1.CreateOptions{})
	framework.ExpectNoError(err, "create PodDisruptionBudget")
	gomega.Eventually(ctx, framework.GetObject(budgets.Get, budget.Name, metav1.GetOptions{})).WithTimeout(f.Timeouts.PodStartShort).WithPolling(poll).
		Should(gomega.HaveField("Status.DisruptionsAllowed", gomega.BeEquivalentTo(1)), "pods that can be evicted")
}
