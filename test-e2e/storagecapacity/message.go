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
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/e2e/framework"
	e2ekubectl "k8s.io/kubernetes/test/e2e/framework/kubectl"
	"k8s.io/kubernetes/test/e2e/storage/utils"
	admissionapi "k8s.io/pod-security-admission/api"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

var _ = utils.SIGDescribe("CSIStorageCapacity pools message", framework.WithFeatureGate(features.CSIStorageCapacityV2), func() {
	f := framework.NewDefaultFramework("capacity-message")
	f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

	type messageTest struct {
		// pools are those of the first node, which the others do not have. maximum is the largest volume there.
		pools   []string
		maximum string
		// before is done when that is published. It returns the pod, otherwise there is one with the volumes.
		before  func(ctx context.Context, class *ownClass) *v1.Pod
		volumes []string
		// want comes after the name of the class. NODE stands for the first node.
		want string
	}
	ginkgo.DescribeTable("should say in the events of a pod what storage it lacks:", func(ctx context.Context, test messageTest) {
		class := newOwnClass(ctx, f, 1)
		class.maximum = test.maximum
		if len(test.pools) > 0 {
			class.publish(ctx, class.nodes[0], "100Gi", test.pools...)
		}
		var pod *v1.Pod
		if test.before != nil {
			pod = test.before(ctx, class)
		}
		if pod == nil {
			pod = class.createPod(ctx, class.createClaims(ctx, test.volumes...)...)
		}
		want := "class " + class.name + ": " + strings.ReplaceAll(test.want, "NODE", class.nodes[0])
		gomega.Eventually(ctx, func() string {
			return e2ekubectl.RunKubectlOrDie(f.Namespace.Name, "describe", "pod", pod.Name)
		}, time.Minute, poll).Should(gomega.ContainSubstring(want))
	},
		ginkgo.Entry("no room", messageTest{pools: []string{"50Gi"}, volumes: []string{"60Gi"},
			want: "needs 60Gi, the closest node (NODE) has 50Gi"}),
		ginkgo.Entry("a volume larger than the largest pool", messageTest{pools: []string{"50Gi", "50Gi"}, volumes: []string{"60Gi"},
			want: "needs 60Gi, the closest node (NODE) has pools of 50Gi, 50Gi"}),
		ginkgo.Entry("volumes that do not fit together", messageTest{pools: []string{"120Gi", "80Gi"}, volumes: []string{"100Gi", "100Gi"},
			want: "needs 100Gi + 100Gi, the closest node (NODE) has pools of 120Gi, 80Gi"}),
		ginkgo.Entry("a volume larger than the maximum", messageTest{pools: []string{"100Gi"}, maximum: "50Gi", volumes: []string{"60Gi"},
			want: "needs 60Gi, the closest node (NODE) takes volumes of at most 50Gi"}),
		ginkgo.Entry("no object", messageTest{volumes: []string{"60Gi"},
			want: "needs 60Gi, the closest node (NODE) has no CSIStorageCapacity object for it"}),
		ginkgo.Entry("room that is reserved", messageTest{pools: []string{"100Gi"}, volumes: []string{"60Gi"},
			before: func(ctx context.Context, class *ownClass) *v1.Pod {
				claims := class.createClaims(ctx, "70Gi")
				expectSelected(ctx, f, class.createPod(ctx, claims...), class.nodes[0], claims...)
				return nil
			},
			want: "needs 60Gi, the closest node (NODE) has 100Gi, 70Gi of them reserved for other pods"}),
		ginkgo.Entry("a driver that has refused", messageTest{pools: []string{"100Gi"},
			before: func(ctx context.Context, class *ownClass) *v1.Pod {
				claims := class.createClaims(ctx, "60Gi")
				pod := class.createPod(ctx, claims...)
				expectSelected(ctx, f, pod, class.nodes[0], claims...)
				ginkgo.By("refusing the claim, as a provisioner does")
				patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, storagehelpers.AnnSelectedNode)
				_, err := f.ClientSet.CoreV1().PersistentVolumeClaims(f.Namespace.Name).Patch(ctx, claims[0].Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
				framework.ExpectNoError(err, "take the selected node away")
				return pod
			},
			want: "needs 60Gi, the closest node (NODE) has 100Gi, but its driver recently failed to provision it"}),
	)
})
