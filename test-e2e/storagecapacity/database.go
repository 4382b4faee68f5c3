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

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/kubernetes/test/e2e/framework"
	e2edeployment "k8s.io/kubernetes/test/e2e/framework/deployment"
	e2epod "k8s.io/kubernetes/test/e2e/framework/pod"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// database is one pod of a Deployment, with data in a volume.
type database struct {
	d          *testDriver
	deployment *appsv1.Deployment
	claim      *v1.PersistentVolumeClaim
	// home is the node on which the pod was started first.
	home string
	// checksum is that of the data.
	checksum string
}

// startDatabase starts one and writes the data. The name is that of its Deployment, and the
// value of the label app of its pod.
func startDatabase(ctx context.Context, d *testDriver, name, class string, size resource.Quantity) *database {
	ginkgo.GinkgoHelper()
	db := &database{d: d, claim: createClaims(ctx, d.f, class, size)[0]}
	labels := map[string]string{"app": name}
	deployment := e2edeployment.NewDeployment(name, 1, labels, "database", "", appsv1.RecreateDeploymentStrategyType)
	deployment.Spec.Template.Spec = makePod(d.f, d.nodes, db.claim).Spec
	deployment.Spec.Template.Spec.RestartPolicy = v1.RestartPolicyAlways
	var err error
	db.deployment, err = d.f.ClientSet.AppsV1().Deployments(d.f.Namespace.Name).Create(ctx, deployment, metav1.CreateOptions{})
	framework.ExpectNoError(err, "create Deployment")

	pod := d.waitRunning(ctx, db.pod(ctx, ""))
	db.home = pod.Spec.NodeName
	e2epod.ExecShellInPod(ctx, d.f, pod.Name, "dd if=/dev/urandom of="+dataFile+" bs=64k count=32 && sync")
	db.checksum = db.sum(ctx, pod)
	db.claim, err = d.f.ClientSet.CoreV1().PersistentVolumeClaims(db.claim.Namespace).Get(ctx, db.claim.Name, metav1.GetOptions{})
	framework.ExpectNoError(err, "get claim")
	framework.Logf("The database %s runs on node %s, its data has the checksum %s", name, db.home, db.checksum)
	return db
}

const dataFile = e2epod.VolumeMountPath1 + "/data"

func (db *database) sum(ctx context.Context, pod *v1.Pod) string {
	ginkgo.GinkgoHelper()
	sum, _, _ := strings.Cut(e2epod.ExecShellInPod(ctx, db.d.f, pod.Name, "sha256sum "+dataFile), " ")
	gomega.Expect(sum).To(gomega.HaveLen(64), "SHA-256 of the data")
	return sum
}

// pod waits until the Deployment has one pod, and not the one with a UID, and returns it.
func (db *database) pod(ctx context.Context, not types.UID) *v1.Pod {
	ginkgo.GinkgoHelper()
	var pods []v1.Pod
	gomega.Eventually(ctx, framework.HandleRetry(func(ctx context.Context) (int, error) {
		list, err := e2edeployment.GetPodsForDeployment(ctx, db.d.f.ClientSet, db.deployment)
		if err != nil {
			return 0, nil // no ReplicaSet yet
		}
		pods = list.Items
		if len(pods) == 1 && pods[0].UID == not {
			return 0, nil
		}
		return len(pods), nil
	})).WithTimeout(db.d.f.Timeouts.PodStartShort).WithPolling(poll).Should(gomega.Equal(1), "pods of the database")
	return &pods[0]
}

// drain cordons a node until the spec ends, evicts the database from it, and returns the
// pod that takes its place.
func (db *database) drain(ctx context.Context, node string) *v1.Pod {
	ginkgo.GinkgoHelper()
	ginkgo.By("draining node " + node)
	pod := db.pod(ctx, "")
	gomega.Expect(pod.Spec.NodeName).To(gomega.Equal(node), "node of the database")
	setUnschedulable(ctx, db.d.f, node, true)
	ginkgo.DeferCleanup(setUnschedulable, db.d.f, node, false)
	framework.ExpectNoError(evict(ctx, db.d.f, pod), "evict pod")
	return db.pod(ctx, pod.UID)
}

// evict evicts only this pod: others of its node are not the spec's.
func evict(ctx context.Context, f *framework.Framework, pod *v1.Pod) error {
	return f.ClientSet.CoreV1().Pods(pod.Namespace).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}})
}

// setUnschedulable cordons or uncordons a node.
func setUnschedulable(ctx context.Context, f *framework.Framework, node string, unschedulable bool) {
	ginkgo.GinkgoHelper()
	patch := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, unschedulable)
	_, err := f.ClientSet.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	framework.ExpectNoError(err, "set unschedulable of node %s to %t", node, unschedulable)
}

// expectOn waits until the pod of the database runs, and checks that this is on a node,
// with the volume and the data that it had from the beginning.
func (db *database) expectOn(ctx context.Context, pod *v1.Pod, node string) {
	ginkgo.GinkgoHelper()
	ginkgo.By("expecting the database with its data on node " + node)
	core := db.d.f.ClientSet.CoreV1()
	gomega.Eventually(ctx, framework.GetObject(core.Pods(pod.Namespace).Get, pod.Name, metav1.GetOptions{})).
		WithTimeout(db.d.f.Timeouts.PodStartShort).WithPolling(poll).
		Should(framework.MakeMatcher(func(pod *v1.Pod) (func() string, error) {
			if pod.Spec.NodeName != "" && pod.Spec.NodeName != node {
				return nil, gomega.StopTrying(fmt.Sprintf("Expected pod %s on node %s, got %s", pod.Name, node, pod.Spec.NodeName))
			}
			if !e2epod.RunningReady(pod) {
				return func() string {
					return fmt.Sprintf("Expected pod %s to run, got status:\n%s", pod.Name, pod.Status.String())
				}, nil
			}
			return nil, nil
		}))
	gomega.Expect(db.sum(ctx, pod)).To(gomega.Equal(db.checksum), "checksum of the data on node %s", node)

	claim, err := core.PersistentVolumeClaims(pod.Namespace).Get(ctx, db.claim.Name, metav1.GetOptions{})
	framework.ExpectNoError(err, "get claim")
	gomega.Expect(claim.Spec.VolumeName).To(gomega.Equal(db.claim.Spec.VolumeName), "volume of the claim")
	gomega.Expect(claim.Status.Phase).To(gomega.Equal(v1.ClaimBound), "phase of the claim")
	db.expectReachableFrom(ctx, node)
	db.expectAttachment(ctx, node)
}

// sentTo returns the node to which the claim was sent last.
func (db *database) sentTo(ctx context.Context) string {
	ginkgo.GinkgoHelper()
	claim, err := db.d.f.ClientSet.CoreV1().PersistentVolumeClaims(db.claim.Namespace).Get(ctx, db.claim.Name, metav1.GetOptions{})
	framework.ExpectNoError(err, "get claim")
	return claim.Annotations[storagehelpers.AnnSelectedNode]
}

// expectReachableFrom waits until the driver says that the volume can be used on a node.
func (db *database) expectReachableFrom(ctx context.Context, node string) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(ctx context.Context) ([]string, error) { return db.reachableFrom(ctx) }).
		WithTimeout(db.d.f.Timeouts.ClaimBound).WithPolling(poll).Should(gomega.ContainElement(node), "nodes of the volume's node affinity")
}

// reachableFrom returns the nodes, of those that the spec uses, in the volume's node
// affinity. None, if it is unset.
func (db *database) reachableFrom(ctx context.Context) ([]string, error) {
	core := db.d.f.ClientSet.CoreV1()
	volume, err := core.PersistentVolumes().Get(ctx, db.claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil || volume.Spec.NodeAffinity == nil {
		return nil, err
	}
	var nodes []string
	for _, name := range db.d.nodes {
		node, err := core.Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if storagehelpers.CheckNodeAffinity(volume, node.Labels) == nil {
			nodes = append(nodes, name)
		}
	}
	return nodes, nil
}

// expectAttachment waits until the volume is attached to a node and to no other, if the
// driver needs that, and checks that there is no attachment otherwise.
func (db *database) expectAttachment(ctx context.Context, node string) {
	ginkgo.GinkgoHelper()
	var want []string
	if r := db.d.object.Spec.AttachRequired; r == nil || *r {
		want = []string{node}
	}
	gomega.Eventually(ctx, framework.HandleRetry(func(ctx context.Context) ([]string, error) {
		list, err := db.d.f.ClientSet.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		var attached []string
		for _, a := range list.Items {
			if isFor(a.Spec.Source, db.claim.Spec.VolumeName) {
				attached = append(attached, a.Spec.NodeName)
			}
		}
		return attached, nil
	})).WithTimeout(db.d.f.Timeouts.ClaimBound).WithPolling(poll).Should(gomega.Equal(want), "nodes to which the volume is attached")
}

func isFor(source storagev1.VolumeAttachmentSource, volume string) bool {
	return source.PersistentVolumeName != nil && *source.PersistentVolumeName == volume
}

// expectRescheduled waits until the scheduler has told of its decisions to move the
// volume, one event for each on the claim and on the pod, and checks that there are no
// more.
func (db *database) expectRescheduled(ctx context.Context, times int) {
	ginkgo.GinkgoHelper()
	const reason = "CapacityAwareRescheduling"
	count := framework.HandleRetry(func(ctx context.Context) (map[string]int, error) {
		list, err := db.d.f.ClientSet.CoreV1().Events(db.claim.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
		if err != nil {
			return nil, err
		}
		got := map[string]int{"PersistentVolumeClaim": 0, "Pod": 0}
		for _, e := range list.Items {
			got[e.InvolvedObject.Kind]++
		}
		return got, nil
	})
	want := map[string]int{"PersistentVolumeClaim": times, "Pod": times}
	gomega.Eventually(ctx, count).WithTimeout(30*time.Second).WithPolling(poll).Should(gomega.Equal(want), "events %s by kind", reason)
	gomega.Consistently(ctx, count).WithTimeout(2*time.Second).WithPolling(poll).Should(gomega.Equal(want), "events %s by kind", reason)
}
