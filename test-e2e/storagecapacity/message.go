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
	"time"

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

	ginkgo.It("should say in the events of a pod which volumes do not fit together", func(ctx context.Context) {
		class := newOwnClass(ctx, f, 1)
		class.publish(ctx, class.nodes[0], "200Gi", "120Gi", "80Gi")
		pod := class.createPod(ctx, class.createClaims(ctx, "100Gi", "100Gi")...)
		want := fmt.Sprintf("class %s: needs 100Gi + 100Gi, the closest node (%s) has pools of 120Gi, 80Gi", class.name, class.nodes[0])
		gomega.Eventually(ctx, func() string {
			return e2ekubectl.RunKubectlOrDie(f.Namespace.Name, "describe", "pod", pod.Name)
		}, time.Minute, poll).Should(gomega.ContainSubstring(want))
	})
})
