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

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	storagev1apply "k8s.io/client-go/applyconfigurations/storage/v1"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/storage/utils"
	admissionapi "k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

var _ = utils.SIGDescribe("CSIStorageCapacity pools API", framework.WithFeatureGate(features.CSIStorageCapacityV2), func() {
	f := framework.NewDefaultFramework("capacity-api")
	f.NamespacePodSecurityLevel = admissionapi.LevelRestricted

	// newCapacity returns an object for a fictional class.
	newCapacity := func(sizes ...string) *storagev1.CSIStorageCapacity {
		return &storagev1.CSIStorageCapacity{
			ObjectMeta:          metav1.ObjectMeta{GenerateName: "pools-"},
			StorageClassName:    "e2e.example.com",
			NodeTopology:        &metav1.LabelSelector{},
			AvailableCapacities: quantities(sizes...),
		}
	}

	expectPools := func(ctx context.Context, what string, got *storagev1.CSIStorageCapacity, sizes ...string) {
		ginkgo.GinkgoHelper()
		stored, err := f.ClientSet.StorageV1().CSIStorageCapacities(got.Namespace).Get(ctx, got.Name, metav1.GetOptions{})
		framework.ExpectNoError(err, "get CSIStorageCapacity")
		for where, object := range map[string]*storagev1.CSIStorageCapacity{"the response": got, "the stored object": stored} {
			pools := make([]string, 0)
			for _, q := range object.AvailableCapacities {
				pools = append(pools, q.String())
			}
			gomega.Expect(pools).To(gomega.HaveExactElements(sizes), "availableCapacities of %s after %s", where, what)
		}
	}

	ginkgo.It("should keep availableCapacities through create, update, patch and apply", func(ctx context.Context) {
		client := f.ClientSet.StorageV1().CSIStorageCapacities(f.Namespace.Name)

		ginkgo.By("creating an object with three pools")
		capacity, err := client.Create(ctx, newCapacity("120Gi", "80Gi", "80Gi"), metav1.CreateOptions{})
		framework.ExpectNoError(err, "create CSIStorageCapacity")
		expectPools(ctx, "create", capacity, "120Gi", "80Gi", "80Gi")

		ginkgo.By("updating the pools")
		capacity.AvailableCapacities = quantities("20Gi", "80Gi")
		capacity, err = client.Update(ctx, capacity, metav1.UpdateOptions{})
		framework.ExpectNoError(err, "update CSIStorageCapacity")
		expectPools(ctx, "update", capacity, "20Gi", "80Gi")

		ginkgo.By("patching the capacity alone")
		capacity, err = client.Patch(ctx, capacity.Name, types.MergePatchType, []byte(`{"capacity":"100Gi"}`), metav1.PatchOptions{})
		framework.ExpectNoError(err, "patch CSIStorageCapacity")
		expectPools(ctx, "a patch of another field", capacity, "20Gi", "80Gi")

		ginkgo.By("patching the pools")
		capacity, err = client.Patch(ctx, capacity.Name, types.MergePatchType, []byte(`{"availableCapacities":["1Ti","0"]}`), metav1.PatchOptions{})
		framework.ExpectNoError(err, "patch CSIStorageCapacity")
		expectPools(ctx, "patch", capacity, "1Ti", "0")

		ginkgo.By("applying other pools")
		capacity, err = client.Apply(ctx, storagev1apply.CSIStorageCapacity(capacity.Name, capacity.Namespace).
			WithStorageClassName(capacity.StorageClassName).WithAvailableCapacities(quantities("5Gi")...),
			metav1.ApplyOptions{FieldManager: f.UniqueName, Force: true})
		framework.ExpectNoError(err, "apply CSIStorageCapacity")
		expectPools(ctx, "apply", capacity, "5Gi")

		ginkgo.By("removing the pools")
		capacity.AvailableCapacities = nil
		capacity, err = client.Update(ctx, capacity, metav1.UpdateOptions{})
		framework.ExpectNoError(err, "update CSIStorageCapacity")
		expectPools(ctx, "removal", capacity)
	})

	ginkgo.It("should refuse availableCapacities that are negative or too many", func(ctx context.Context) {
		client := f.ClientSet.StorageV1().CSIStorageCapacities(f.Namespace.Name)
		const maximum = 256
		negative := `availableCapacities[1]: Invalid value: "-1Gi": must be greater than or equal to 0`
		tooMany := fmt.Sprintf("availableCapacities: Too many: %d: must have at most %d items", maximum+1, maximum)

		_, err := client.Create(ctx, newCapacity("1Gi", "-1Gi"), metav1.CreateOptions{})
		expectInvalid(err, negative)
		many := newCapacity()
		many.AvailableCapacities = make([]resource.Quantity, maximum+1)
		_, err = client.Create(ctx, many, metav1.CreateOptions{})
		expectInvalid(err, tooMany)

		many.AvailableCapacities = many.AvailableCapacities[1:]
		capacity, err := client.Create(ctx, many, metav1.CreateOptions{})
		framework.ExpectNoError(err, "create CSIStorageCapacity with %d pools", maximum)
		gomega.Expect(capacity.AvailableCapacities).To(gomega.HaveLen(maximum))

		_, err = client.Patch(ctx, capacity.Name, types.MergePatchType, []byte(`{"availableCapacities":["1Gi","-1Gi"]}`), metav1.PatchOptions{})
		expectInvalid(err, negative)
		capacity.AvailableCapacities = append(capacity.AvailableCapacities, resource.Quantity{})
		_, err = client.Update(ctx, capacity, metav1.UpdateOptions{})
		expectInvalid(err, tooMany)
	})

	ginkgo.It("should default and keep volumeRebuilding of a CSIDriver", func(ctx context.Context) {
		client := f.ClientSet.StorageV1().CSIDrivers()
		driver, err := client.Create(ctx, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: f.UniqueName + ".csi.example.com"}}, metav1.CreateOptions{})
		framework.ExpectNoError(err, "create CSIDriver")
		ginkgo.DeferCleanup(framework.IgnoreNotFound(client.Delete), driver.Name, metav1.DeleteOptions{})
		gomega.Expect(driver.Spec.VolumeRebuilding).To(gomega.HaveValue(gomega.BeFalse()), "the default")

		driver.Spec.VolumeRebuilding = ptr.To(true)
		driver, err = client.Update(ctx, driver, metav1.UpdateOptions{})
		framework.ExpectNoError(err, "update CSIDriver")
		gomega.Expect(driver.Spec.VolumeRebuilding).To(gomega.HaveValue(gomega.BeTrue()), "after an update")

		driver, err = client.Patch(ctx, driver.Name, types.MergePatchType, []byte(`{"spec":{"podInfoOnMount":true}}`), metav1.PatchOptions{})
		framework.ExpectNoError(err, "patch another field of the CSIDriver")
		gomega.Expect(driver.Spec.VolumeRebuilding).To(gomega.HaveValue(gomega.BeTrue()), "after a patch of another field")

		driver, err = client.Patch(ctx, driver.Name, types.MergePatchType, []byte(`{"spec":{"volumeRebuilding":false}}`), metav1.PatchOptions{})
		framework.ExpectNoError(err, "patch the CSIDriver")
		gomega.Expect(driver.Spec.VolumeRebuilding).To(gomega.HaveValue(gomega.BeFalse()), "after a patch")
	})
})

func quantities(sizes ...string) []resource.Quantity {
	var all []resource.Quantity
	for _, size := range sizes {
		all = append(all, resource.MustParse(size))
	}
	return all
}

func expectInvalid(err error, text string) {
	ginkgo.GinkgoHelper()
	gomega.Expect(apierrors.IsInvalid(err)).To(gomega.BeTrueBecause("the object is invalid, got: %v", err))
	gomega.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(text)))
}
