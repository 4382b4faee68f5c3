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
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/ephemeral"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/test/e2e/framework"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
)

// Reasons for which the scheduler refuses a node.
const (
	notEnoughSpace     = "node(s) did not have enough free storage"
	capacityReserved   = "node(s) had storage capacity reserved by another pod"
	otherNodesVolume   = "node(s) didn't match PersistentVolume's node affinity"
	unschedulableNodes = "node(s) were unschedulable"
)

// decision is what the scheduler has decided for a pod.
type decision struct {
	// pod has the node, or the reasons why there is none.
	pod *v1.Pod
	// selected are the nodes to which the claims of the pod were sent, in the order of
	// its volumes, also of ephemeral ones; "" where the claim was not sent.
	selected []string
}

func (d *decision) String() string {
	message := "none"
	if _, c := podutil.GetPodCondition(&d.pod.Status, v1.PodScheduled); c != nil {
		message = fmt.Sprintf("%s %s %q", c.Status, c.Reason, c.Message)
	}
	return fmt.Sprintf("pod %s: node %q, claims sent to %q, condition PodScheduled: %s", d.pod.Name, d.pod.Spec.NodeName, d.selected, message)
}

// refusals splits the message of the condition: how many nodes were refused for which
// reason.
func (d *decision) refusals() []string {
	_, c := podutil.GetPodCondition(&d.pod.Status, v1.PodScheduled)
	if c == nil || c.Status != v1.ConditionFalse || c.Reason != v1.PodReasonUnschedulable {
		return nil
	}
	_, list, _ := strings.Cut(c.Message, "nodes are available: ")
	list, _, _ = strings.Cut(list, ". ") // preemption is about the same nodes
	return strings.Split(strings.TrimSuffix(list, "."), ", ")
}

// decisionsFor returns a function that gets what is decided now for pods of one
// namespace, in their order.
func decisionsFor(f *framework.Framework, pods ...*v1.Pod) framework.GetFunc[[]*decision] {
	return framework.HandleRetry(func(ctx context.Context) ([]*decision, error) {
		core := f.ClientSet.CoreV1()
		podList, err := core.Pods(f.Namespace.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		claims, err := core.PersistentVolumeClaims(f.Namespace.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		current, selected := map[string]*v1.Pod{}, map[string]string{}
		for i := range podList.Items {
			current[podList.Items[i].Name] = &podList.Items[i]
		}
		for _, claim := range claims.Items {
			selected[claim.Name] = claim.Annotations[storagehelpers.AnnSelectedNode]
		}
		var decisions []*decision
		for _, pod := range pods {
			if current[pod.Name] == nil {
				return nil, fmt.Errorf("pod %s is gone", pod.Name)
			}
			d := &decision{pod: current[pod.Name]}
			for i := range d.pod.Spec.Volumes {
				switch volume := &d.pod.Spec.Volumes[i]; {
				case volume.PersistentVolumeClaim != nil:
					d.selected = append(d.selected, selected[volume.PersistentVolumeClaim.ClaimName])
				case volume.Ephemeral != nil:
					d.selected = append(d.selected, selected[ephemeral.VolumeClaimName(d.pod, volume)])
				}
			}
			decisions = append(decisions, d)
		}
		return decisions, nil
	})
}

// lacks returns one of the refusals with which the pod was not refused, or "".
func (d *decision) lacks(refusals []string) string {
	got := d.refusals()
	for _, r := range refusals {
		if !slices.Contains(got, r) {
			return r
		}
	}
	return ""
}

// beRefused matches pods that were refused with each of the refusals, and whose claims
// were not sent to any node but sentTo. A pod that gets a node is a final failure.
func beRefused(sentTo string, refusals ...string) types.GomegaMatcher {
	return framework.MakeMatcher(func(decisions []*decision) (func() string, error) {
		for _, d := range decisions {
			elsewhere := func(node string) bool { return node != "" && node != sentTo }
			if d.pod.Spec.NodeName != "" || slices.ContainsFunc(d.selected, elsewhere) {
				return nil, gomega.StopTrying(fmt.Sprintf("Expected no node for the pod, refused with %q. Got instead:\n%s", refusals, d))
			}
			if lacking := d.lacks(refusals); lacking != "" {
				return func() string { return fmt.Sprintf("Expected a refusal %q. Got instead:\n%s", lacking, d) }, nil
			}
		}
		return nil, nil
	})
}

// expectRefused waits until a new pod is refused with each of the refusals, and checks
// that it stays so and that no node was selected for its claims.
func expectRefused(ctx context.Context, f *framework.Framework, pod *v1.Pod, refusals ...string) {
	ginkgo.GinkgoHelper()
	expectRefusedAfter(ctx, f, pod, "", refusals...)
}

// expectRefusedAfter is expectRefused for a pod whose claims were sent to a node before.
func expectRefusedAfter(ctx context.Context, f *framework.Framework, pod *v1.Pod, sentTo string, refusals ...string) {
	ginkgo.GinkgoHelper()
	ginkgo.By(fmt.Sprintf("expecting for pod %s: %s", pod.Name, strings.Join(refusals, ", ")))
	get := decisionsFor(f, pod)
	gomega.Eventually(ctx, get).WithTimeout(f.Timeouts.ClaimProvisionShort).WithPolling(poll).Should(beRefused(sentTo, refusals...))
	gomega.Consistently(ctx, get).WithTimeout(settled).WithPolling(poll).Should(beRefused(sentTo, refusals...))
}

// beSplit matches pods of which so many were sent to a node, and all others were refused
// with each of the refusals. More pods with a node are a final failure.
func beSplit(accepted int, refusals ...string) types.GomegaMatcher {
	return framework.MakeMatcher(func(decisions []*decision) (func() string, error) {
		sent, refused := 0, 0
		var all []string
		for _, d := range decisions {
			if !slices.Contains(d.selected, "") {
				sent++
			} else if d.lacks(refusals) == "" {
				refused++
			}
			all = append(all, d.String())
		}
		message := func() string {
			return fmt.Sprintf("Expected a node for %d of %d pods, and for the others %q. Got instead %d and %d:\n%s",
				accepted, len(decisions), refusals, sent, refused, strings.Join(all, "\n"))
		}
		switch {
		case sent > accepted:
			return nil, gomega.StopTrying(message())
		case sent < accepted || sent+refused < len(decisions):
			return message, nil
		}
		return nil, nil
	})
}

// expectSplit waits until so many of the pods are sent to a node, and all others are
// refused with each of the refusals, and checks that it stays so.
func expectSplit(ctx context.Context, f *framework.Framework, pods []*v1.Pod, accepted int, refusals ...string) {
	ginkgo.GinkgoHelper()
	ginkgo.By(fmt.Sprintf("expecting a node for %d of %d pods, and for the others: %s", accepted, len(pods), strings.Join(refusals, ", ")))
	get := decisionsFor(f, pods...)
	gomega.Eventually(ctx, get).WithTimeout(f.Timeouts.PodStartShort).WithPolling(poll).Should(beSplit(accepted, refusals...))
	gomega.Consistently(ctx, get).WithTimeout(settled).WithPolling(poll).Should(beSplit(accepted, refusals...))
}

// expectSelected waits until all claims of a pod that are not bound were sent to a node.
// Nothing but that is expected of pods whose volumes nobody provisions.
func expectSelected(ctx context.Context, f *framework.Framework, pod *v1.Pod, node string, claims ...*v1.PersistentVolumeClaim) {
	ginkgo.GinkgoHelper()
	ginkgo.By(fmt.Sprintf("expecting node %s for pod %s", node, pod.Name))
	for _, claim := range claims {
		gomega.Eventually(ctx, framework.GetObject(f.ClientSet.CoreV1().PersistentVolumeClaims(claim.Namespace).Get, claim.Name, metav1.GetOptions{})).
			WithTimeout(f.Timeouts.ClaimProvisionShort).WithPolling(poll).
			Should(framework.MakeMatcher(func(claim *v1.PersistentVolumeClaim) (func() string, error) {
				switch got := claim.Annotations[storagehelpers.AnnSelectedNode]; got {
				case node:
					return nil, nil
				case "":
					return func() string { return fmt.Sprintf("Expected claim %s to be sent to node %s", claim.Name, node) }, nil
				default:
					return nil, gomega.StopTrying(fmt.Sprintf("Expected claim %s to be sent to node %s, it was sent to %s", claim.Name, node, got))
				}
			}))
	}
}
