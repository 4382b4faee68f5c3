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
	"strings"

	"google.golang.org/grpc/codes"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	e2epod "k8s.io/kubernetes/test/e2e/framework/pod"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// createClaims creates claims of the driver's class.
func (d *testDriver) createClaims(ctx context.Context, sizes ...resource.Quantity) []*v1.PersistentVolumeClaim {
	ginkgo.GinkgoHelper()
	return createClaims(ctx, d.f, d.class.Name, sizes...)
}

// waitRunning waits until a pod runs, and returns it as it is then.
func (d *testDriver) waitRunning(ctx context.Context, pod *v1.Pod) *v1.Pod {
	ginkgo.GinkgoHelper()
	framework.ExpectNoError(e2epod.WaitTimeoutForPodRunningInNamespace(ctx, d.f.ClientSet, pod.Name, pod.Namespace, d.f.Timeouts.PodStartShort))
	pod, err := d.f.ClientSet.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	framework.ExpectNoError(err, "get pod")
	return pod
}

// occupy runs a pod on a node whose volumes take the sizes, and waits until the node
// publishes that.
func (d *testDriver) occupy(ctx context.Context, node string, sizes ...int64) *v1.Pod {
	ginkgo.GinkgoHelper()
	ginkgo.By(fmt.Sprintf("using %d volume(s) of node %s", len(sizes), node))
	before := d.published(ctx, node)
	var quantities []resource.Quantity
	for _, size := range sizes {
		quantities = append(quantities, bytes(size))
	}
	pod := d.waitRunning(ctx, createPod(ctx, d.f, []string{node}, d.createClaims(ctx, quantities...)...))
	gomega.Eventually(ctx, d.published).WithArguments(node).WithTimeout(d.f.Timeouts.PodStartShort).WithPolling(poll).
		ShouldNot(gomega.Equal(before), "what node %s publishes", node)
	return pod
}

// fill is occupy for all pools of a node that have room for a volume.
func (d *testDriver) fill(ctx context.Context, node string, volume resource.Quantity) *v1.Pod {
	ginkgo.GinkgoHelper()
	var sizes []int64
	for _, pool := range d.pools(ctx)[node] {
		if pool >= volume.Value() {
			sizes = append(sizes, pool)
		}
	}
	return d.occupy(ctx, node, sizes...)
}

// remove removes a pod with its volumes.
func (d *testDriver) remove(ctx context.Context, pod *v1.Pod) {
	ginkgo.GinkgoHelper()
	framework.ExpectNoError(e2epod.DeletePodWithWait(ctx, d.f.ClientSet, pod))
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			err := d.f.ClientSet.CoreV1().PersistentVolumeClaims(pod.Namespace).Delete(ctx, volume.PersistentVolumeClaim.ClaimName, metav1.DeleteOptions{})
			framework.ExpectNoError(err, "delete claim")
		}
	}
}

// expectNoFailedProvisioning checks that the driver was never asked for a volume for
// which it had no room.
func (d *testDriver) expectNoFailedProvisioning(ctx context.Context) {
	ginkgo.GinkgoHelper()
	gomega.Expect(d.failedProvisioning(ctx)).To(gomega.BeEmpty(), "events ProvisioningFailed")
}

// failedProvisioning returns what was said of volumes that could not be created. Where the machine is slow, the provisioner does not wait
// for an answer, and asks again while the driver goes on: that is no failure.
func (d *testDriver) failedProvisioning(ctx context.Context) ([]string, error) {
	events, err := d.f.ClientSet.CoreV1().Events(d.f.Namespace.Name).List(ctx, metav1.ListOptions{FieldSelector: "reason=ProvisioningFailed"})
	if err != nil {
		return nil, err
	}
	var messages []string
	for _, e := range events.Items {
		if goesOn := strings.Contains(e.Message, "code = "+codes.Aborted.String()) || strings.Contains(e.Message, "code = "+codes.DeadlineExceeded.String()); !goesOn {
			messages = append(messages, fmt.Sprintf("%s: %s", e.InvolvedObject.Name, e.Message))
		}
	}
	return messages, nil
}
