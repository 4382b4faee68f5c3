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
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/e2e/framework"
	e2epod "k8s.io/kubernetes/test/e2e/framework/pod"
	e2epv "k8s.io/kubernetes/test/e2e/framework/pv"
	"k8s.io/kubernetes/test/e2e/storage/utils"
	admissionapi "k8s.io/pod-security-admission/api"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

var _ = utils.SIGDescribe("CSIStorageCapacity pools provisioning", framework.WithFeatureGate(features.CSIStorageCapacityV2), framework.WithSerial(), func() {
	f := framework.NewDefaultFramework("capacity-provisioning")
	f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

	ginkgo.It("should respect multi-pool capacity objects with joint PVC evaluation", func(ctx context.Context) {
		d := newTestDriver(ctx, f, 1)
		// Half of a pool is used on each node, so each volume fits, and not all together.
		var users []*v1.Pod
		for _, node := range d.nodes {
			users = append(users, d.occupy(ctx, node, slices.Min(d.atFirst[node])/2))
		}
		var sizes []resource.Quantity
		for _, pool := range d.atFirst[d.nodes[0]] {
			sizes = append(sizes, bytes(pool))
		}
		pod := createPod(ctx, f, d.nodes, d.createClaims(ctx, sizes...)...)
		expectRefused(ctx, f, pod, refusal(len(d.nodes), notEnoughSpace))

		ginkgo.By("emptying a node whose pools have the sizes of the volumes")
		d.remove(ctx, users[0])
		pod = d.waitRunning(ctx, pod)
		gomega.Expect(pod.Spec.NodeName).To(gomega.Equal(d.nodes[0]))
		d.expectNoFailedProvisioning(ctx)
	})

	ginkgo.It("should run a pod with a static and new volumes where the new ones fit", func(ctx context.Context) {
		d := newTestDriver(ctx, f, 2)
		home := d.nodes[0]
		static := createReleasedVolume(ctx, d, home, bytes(d.smallestPool()/2))
		claim := bindReleasedVolume(ctx, d, static)

		left := d.pools(ctx)[home]
		tooLarge, fitting := []resource.Quantity{}, []resource.Quantity{}
		for i, pool := range d.atFirst[home] {
			tooLarge, fitting = append(tooLarge, bytes(pool)), append(fitting, bytes(left[i]))
		}
		refused := createPod(ctx, f, d.nodes, append(d.createClaims(ctx, tooLarge...), claim)...)
		expectRefused(ctx, f, refused, refusal(1, notEnoughSpace), refusal(len(d.nodes)-1, otherNodesVolume))
		framework.ExpectNoError(e2epod.DeletePodWithWait(ctx, f.ClientSet, refused))

		pod := d.waitRunning(ctx, createPod(ctx, f, d.nodes, append([]*v1.PersistentVolumeClaim{claim}, d.createClaims(ctx, fitting...)...)...))
		gomega.Expect(pod.Spec.NodeName).To(gomega.Equal(home))
		d.expectNoFailedProvisioning(ctx)
	})

	ginkgo.It("should reduce concurrent scheduling conflicts with capacity reservation", func(ctx context.Context) {
		d := newTestDriver(ctx, f, 1)
		size, room := d.smallestPool()*3/5, 0
		for _, pools := range d.atFirst {
			for _, pool := range pools {
				room += int(pool / size)
			}
		}
		ginkgo.By(fmt.Sprintf("creating more pods than the %d volumes that fit", room))
		claims := d.createClaims(ctx, slices.Repeat([]resource.Quantity{bytes(size)}, room+room/2+1)...)
		var pods []*v1.Pod
		for _, claim := range claims {
			pods = append(pods, createPod(ctx, f, d.nodes, claim))
		}
		refused := refusal(len(d.nodes), notEnoughSpace)
		expectSplit(ctx, f, pods, room, refused)
		d.expectNoFailedProvisioning(ctx)
		running := d.waitRunningPods(ctx, room)

		ginkgo.By("making room for one more")
		d.remove(ctx, running[0])
		pods = slices.DeleteFunc(pods, func(pod *v1.Pod) bool { return pod.Name == running[0].Name })
		expectSplit(ctx, f, pods, room, refused)
		d.waitRunningPods(ctx, room)
		d.expectNoFailedProvisioning(ctx)
	})
})

// waitRunningPods waits until so many pods of the namespace run, and returns them.
func (d *testDriver) waitRunningPods(ctx context.Context, n int) []*v1.Pod {
	ginkgo.GinkgoHelper()
	var running []*v1.Pod
	gomega.Eventually(ctx, framework.HandleRetry(func(ctx context.Context) (int, error) {
		pods, err := d.f.ClientSet.CoreV1().Pods(d.f.Namespace.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return 0, err
		}
		running = nil
		for i := range pods.Items {
			if e2epod.RunningReady(&pods.Items[i]) {
				running = append(running, &pods.Items[i])
			}
		}
		return len(running), nil
	})).WithTimeout(d.f.Timeouts.PodStartShort).WithPolling(poll).Should(gomega.Equal(n), "pods that run")
	return running
}

// createReleasedVolume has the driver create a volume on a node, which remains when its
// claim is gone: the only way to a static volume that all drivers have.
func createReleasedVolume(ctx context.Context, d *testDriver, node string, size resource.Quantity) *v1.PersistentVolume {
	ginkgo.GinkgoHelper()
	core := d.f.ClientSet.CoreV1()
	user := d.occupy(ctx, node, size.Value())
	claim, err := core.PersistentVolumeClaims(user.Namespace).Get(ctx, user.Spec.Volumes[0].PersistentVolumeClaim.ClaimName, metav1.GetOptions{})
	framework.ExpectNoError(err, "get claim")
	setPolicy := func(ctx context.Context, policy v1.PersistentVolumeReclaimPolicy) {
		patch := fmt.Sprintf(`{"spec":{"persistentVolumeReclaimPolicy":%q}}`, policy)
		_, err := core.PersistentVolumes().Patch(ctx, claim.Spec.VolumeName, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		framework.ExpectNoError(err, "set the reclaim policy")
	}
	setPolicy(ctx, v1.PersistentVolumeReclaimRetain)
	ginkgo.DeferCleanup(setPolicy, v1.PersistentVolumeReclaimDelete)
	d.remove(ctx, user)
	framework.ExpectNoError(e2epv.WaitForPersistentVolumePhase(ctx, v1.VolumeReleased, d.f.ClientSet, claim.Spec.VolumeName, poll, d.f.Timeouts.PVReclaim))
	volume, err := core.PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	framework.ExpectNoError(err, "get volume")
	return volume
}

// bindReleasedVolume binds a volume to a new claim, as a user does who knows both.
func bindReleasedVolume(ctx context.Context, d *testDriver, volume *v1.PersistentVolume) *v1.PersistentVolumeClaim {
	ginkgo.GinkgoHelper()
	core := d.f.ClientSet.CoreV1()
	claim := e2epv.MakePersistentVolumeClaim(e2epv.PersistentVolumeClaimConfig{
		Name: "static", ClaimSize: volume.Spec.Capacity.Storage().String(), StorageClassName: &d.class.Name}, d.f.Namespace.Name)
	claim.Spec.VolumeName = volume.Name
	patch := fmt.Sprintf(`{"spec":{"claimRef":{"name":%q,"uid":null,"resourceVersion":null}}}`, claim.Name)
	_, err := core.PersistentVolumes().Patch(ctx, volume.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	framework.ExpectNoError(err, "name the claim in the volume")
	claim, err = e2epv.CreatePVC(ctx, d.f.ClientSet, d.f.Namespace.Name, claim)
	framework.ExpectNoError(err, "create claim")
	framework.ExpectNoError(e2epv.WaitForPersistentVolumeClaimPhase(ctx, v1.ClaimBound, d.f.ClientSet, claim.Namespace, claim.Name, poll, d.f.Timeouts.ClaimProvisionShort))
	return claim
}
