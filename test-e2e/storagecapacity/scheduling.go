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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/e2e/framework"
	e2epod "k8s.io/kubernetes/test/e2e/framework/pod"
	e2epv "k8s.io/kubernetes/test/e2e/framework/pv"
	"k8s.io/kubernetes/test/e2e/storage/utils"
	admissionapi "k8s.io/pod-security-admission/api"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

var _ = utils.SIGDescribe("CSIStorageCapacity pools scheduling", framework.WithFeatureGate(features.CSIStorageCapacityV2), func() {
	f := framework.NewDefaultFramework("capacity-pools")
	f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

	// The examples of the KEP's first story, and one that needs an exact search: a volume
	// of 6Gi must not be put into the pool that it fills best.
	type poolsTest struct {
		capacity string
		pools    []string
		volumes  []string
		// grown is what one node publishes later, with room for the volumes.
		grown []string
	}
	ginkgo.DescribeTable("should evaluate all volumes of a pod together:", func(ctx context.Context, test poolsTest) {
		class := newOwnClass(ctx, f, 1)
		class.publishAll(ctx, test.capacity, test.pools...)
		claims := class.createClaims(ctx, test.volumes...)
		pod := class.createPod(ctx, claims...)
		expectRefused(ctx, f, pod, refusal(len(class.nodes), notEnoughSpace))

		class.publish(ctx, class.nodes[0], test.capacity, test.grown...)
		expectSelected(ctx, f, pod, class.nodes[0], claims...)
	},
		ginkgo.Entry("two volumes, one pool with room for either", poolsTest{"100Gi", []string{"100Gi"}, []string{"100Gi", "100Gi"}, []string{"100Gi", "100Gi"}}),
		ginkgo.Entry("a volume larger than each of three pools", poolsTest{"300Gi", []string{"100Gi", "100Gi", "100Gi"}, []string{"120Gi"}, []string{"100Gi", "120Gi"}}),
		ginkgo.Entry("four volumes, three pools", poolsTest{"300Gi", []string{"100Gi", "100Gi", "100Gi"}, []string{"80Gi", "80Gi", "80Gi", "80Gi"}, []string{"100Gi", "100Gi", "100Gi", "80Gi"}}),
		ginkgo.Entry("volumes that fit in one way only", poolsTest{"21Gi", []string{"9Gi", "12Gi"}, []string{"6Gi", "5Gi", "5Gi", "5Gi"}, []string{"10Gi", "11Gi"}}),
	)

	ginkgo.DescribeTable("should ask for room for new volumes only, besides a static one", func(ctx context.Context, preBound bool) {
		const static, pool = "500Gi", "100Gi"
		class := newOwnClass(ctx, f, 2)
		class.publishAll(ctx, pool, pool)
		home := class.nodes[0]
		volume := createStaticVolume(ctx, class, home, static)
		staticClaim := createStaticClaim(ctx, class, volume, preBound)

		refused := class.createPod(ctx, append(class.createClaims(ctx, "60Gi", "60Gi"), staticClaim)...)
		refusals := []string{refusal(len(class.nodes), notEnoughSpace)}
		if preBound {
			refusals = append(refusals, refusal(len(class.nodes)-1, otherNodesVolume))
		}
		expectRefused(ctx, f, refused, refusals...)
		framework.ExpectNoError(e2epod.DeletePodWithWait(ctx, f.ClientSet, refused))

		claims := class.createClaims(ctx, "60Gi", "40Gi")
		expectSelected(ctx, f, class.createPod(ctx, append(claims, staticClaim)...), home, claims...)
		framework.ExpectNoError(e2epv.WaitForPersistentVolumeClaimPhase(ctx, v1.ClaimBound, f.ClientSet, f.Namespace.Name, staticClaim.Name, poll, f.Timeouts.ClaimProvisionShort))
		staticClaim, err := f.ClientSet.CoreV1().PersistentVolumeClaims(f.Namespace.Name).Get(ctx, staticClaim.Name, metav1.GetOptions{})
		framework.ExpectNoError(err, "get claim")
		gomega.Expect(staticClaim.Spec.VolumeName).To(gomega.Equal(volume.Name))
	},
		ginkgo.Entry("that is available", false),
		ginkgo.Entry("that is bound already", true),
	)

	ginkgo.It("should prefer the node with the largest sum of pools", framework.WithFeatureGate(features.StorageCapacityScoring), func(ctx context.Context) {
		class := newOwnClass(ctx, f, 2)
		// What capacity says is the opposite, and must not count where pools are known.
		preferred := class.nodes[len(class.nodes)-1]
		for _, node := range class.nodes {
			if node != preferred {
				class.publish(ctx, node, "5000Gi", "21Gi")
			}
		}
		class.publish(ctx, preferred, "100Gi", slices.Repeat([]string{"100Gi"}, 10)...)

		ginkgo.By("waiting until the scheduler knows the object that was published last")
		last := class.createClaims(ctx, "40Gi")
		expectSelected(ctx, f, class.createPod(ctx, last...), preferred, last...)

		claims := class.createClaims(ctx, "20Gi")
		expectSelected(ctx, f, class.createPod(ctx, claims...), preferred, claims...)
	})

	ginkgo.It("should not use capacity again before it was published again", func(ctx context.Context) {
		const room, pods = 5, 10
		class := newOwnClass(ctx, f, 2)
		class.publish(ctx, class.nodes[0], "100Gi", "100Gi")

		var all []*v1.Pod
		for _, claim := range class.createClaims(ctx, slices.Repeat([]string{"20Gi"}, pods)...) {
			all = append(all, class.createPod(ctx, claim))
		}
		expectSplit(ctx, f, all, room, refusal(1, capacityReserved), refusal(len(class.nodes)-1, notEnoughSpace))
	})
})

// staticModes are access modes that no other claim asks for, so that no other claim gets a
// static volume.
var staticModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteMany}

// createStaticVolume creates a volume that only one node can reach.
func createStaticVolume(ctx context.Context, class *ownClass, node, size string) *v1.PersistentVolume {
	ginkgo.GinkgoHelper()
	client := class.f.ClientSet
	volume := e2epv.MakePersistentVolume(e2epv.PersistentVolumeConfig{
		PVSource:         v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: class.name, VolumeHandle: class.f.UniqueName}},
		Capacity:         size,
		StorageClassName: class.name,
		AccessModes:      staticModes,
		NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{class.hostname(ctx, node)}}},
		}}}},
	})
	volume, err := e2epv.CreatePV(ctx, client, class.f.Timeouts, volume)
	framework.ExpectNoError(err, "create volume")
	ginkgo.DeferCleanup(framework.IgnoreNotFound(client.CoreV1().PersistentVolumes().Delete), volume.Name, metav1.DeleteOptions{})
	return volume
}

// createStaticClaim creates a claim that fits a static volume. If it is bound already, no
// pod has to be scheduled for that.
func createStaticClaim(ctx context.Context, class *ownClass, volume *v1.PersistentVolume, bound bool) *v1.PersistentVolumeClaim {
	ginkgo.GinkgoHelper()
	client, namespace := class.f.ClientSet, class.f.Namespace.Name
	claim := e2epv.MakePersistentVolumeClaim(e2epv.PersistentVolumeClaimConfig{
		ClaimSize: volume.Spec.Capacity.Storage().String(), StorageClassName: &class.name, AccessModes: staticModes}, namespace)
	if bound {
		claim.Spec.VolumeName = volume.Name
	}
	claim, err := e2epv.CreatePVC(ctx, client, namespace, claim)
	framework.ExpectNoError(err, "create claim")
	if bound {
		framework.ExpectNoError(e2epv.WaitForPersistentVolumeClaimPhase(ctx, v1.ClaimBound, client, namespace, claim.Name, poll, class.f.Timeouts.ClaimProvisionShort))
	}
	return claim
}
