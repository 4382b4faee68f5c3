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
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/e2e/framework"
	e2eskipper "k8s.io/kubernetes/test/e2e/framework/skipper"
	"k8s.io/kubernetes/test/e2e/storage/utils"
	admissionapi "k8s.io/pod-security-admission/api"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// The volumes of these specs are moved with their data, so the driver has to keep the
// contract of CSIDriver.spec.volumeRebuilding, and to unset the node affinity of volumes.
var _ = utils.SIGDescribe("CSIStorageCapacity rescheduling", framework.WithFeatureGate(features.CSIStorageCapacityV2), framework.WithFeatureGate(features.MutablePVNodeAffinity), framework.WithSerial(), framework.WithDisruptive(), func() {
	f := framework.NewDefaultFramework("capacity-rescheduling")
	f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

	ginkgo.It("should reschedule to a node with sufficient capacity when the original node is cordoned", func(ctx context.Context) {
		d := newRebuildingDriver(ctx, f, 2)
		size := d.largestVolume()
		db := startDatabase(ctx, d, "database", d.class.Name, size)
		others, users := d.fillOthers(ctx, size, db.home)

		pod := db.drain(ctx, db.home)
		expectRefusedAfter(ctx, f, pod, db.home, refusal(len(others), notEnoughSpace), refusal(1, unschedulableNodes))
		gomega.Expect(db.sentTo(ctx)).To(gomega.Equal(db.home), "node to which the claim was sent")
		db.expectRescheduled(ctx, 0)

		ginkgo.By("making room on node " + others[0])
		d.remove(ctx, users[0])
		db.expectOn(ctx, pod, others[0])
		gomega.Expect(db.sentTo(ctx)).To(gomega.Equal(others[0]), "node to which the claim was sent")
		db.expectRescheduled(ctx, 1)
		d.expectNoFailedProvisioning(ctx)
	})

	ginkgo.It("should leave the volume where it is if its node can be used again before there is room elsewhere", func(ctx context.Context) {
		d := newRebuildingDriver(ctx, f, 2)
		size := d.largestVolume()
		db := startDatabase(ctx, d, "database", d.class.Name, size)
		others, _ := d.fillOthers(ctx, size, db.home)

		pod := db.drain(ctx, db.home)
		expectRefusedAfter(ctx, f, pod, db.home, refusal(len(others), notEnoughSpace), refusal(1, unschedulableNodes))

		setUnschedulable(ctx, f, db.home, false)
		db.expectOn(ctx, pod, db.home)
		gomega.Expect(db.sentTo(ctx)).To(gomega.Equal(db.home), "node to which the claim was sent")
		db.expectRescheduled(ctx, 0)
	})
})

// newRebuildingDriver is newTestDriver for a driver that can move volumes.
func newRebuildingDriver(ctx context.Context, f *framework.Framework, needNodes int) *testDriver {
	ginkgo.GinkgoHelper()
	d := newTestDriver(ctx, f, needNodes)
	// Without the feature, the API server has nothing in the field.
	if rebuilds := d.object.Spec.VolumeRebuilding; rebuilds != nil && !*rebuilds {
		e2eskipper.Skipf("driver %s does not rebuild volumes on other nodes", d.object.Name)
	}
	return d
}

// fillOthers takes the room for a volume on each node but some. It returns the nodes and
// the pods that use them.
func (d *testDriver) fillOthers(ctx context.Context, volume resource.Quantity, but ...string) (nodes []string, users []*v1.Pod) {
	ginkgo.GinkgoHelper()
	for _, node := range d.nodes {
		if !slices.Contains(but, node) {
			nodes, users = append(nodes, node), append(users, d.fill(ctx, node, volume))
		}
	}
	return nodes, users
}
