// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// stumbling is the label of the pod whose first binding fails.
const stumbling = "Stumbling"

// startStumbling starts a control plane whose scheduler holds up the first binding of
// a pod with the label, before or after all other plugins, until the test lets it
// fail.
func startStumbling(t *testing.T, options clustertest.Options, before bool) (*clustertest.Cluster, *clustertest.Hold) {
	t.Helper()
	hold := clustertest.NewHold(func(pod *corev1.Pod, _ string) bool { return pod.Labels[stumbling] != "" })
	hold.Fail = errors.New("stumbled")
	return clustertest.StartWith(ktesting.Init(t), hold.AddTo(options, before)), hold
}

// stumble creates a pod with a volume and returns when its binding is about to
// fail. Another pod waits for the capacity.
func stumble(c *clustertest.Cluster, plugin *clustertest.Hold, size string) {
	c.Helper()
	c.CreatePod(clustertest.Pod{Name: "stumbles", Class: class, Sizes: []string{size}, With: func(pod *st.PodWrapper) {
		pod.Label(stumbling, "once")
	}})
	plugin.Wait(c)
	c.CreatePod(clustertest.Pod{Name: "waits", Class: class, Sizes: []string{size}})
	c.ExpectReason("waits", 1, clustertest.Reserved)
}

// TestFailedBinding: the pod that waits for the capacity of one that fails to bind goes on without a refresh, if no volume was
// asked for, and waits for a refresh if there is one.
func TestFailedBinding(t *testing.T) {
	for name, before := range map[string]bool{"before provisioning": true, "after provisioning": false} {
		t.Run(name, func(t *testing.T) {
			clustertest.ForAnyPolicy(t, func(t *testing.T, options clustertest.Options) {
				c, plugin := startStumbling(t, options, before)
				c.CreateNodes(1)
				driver := c.StartDriver(unpublished([]int64{100}))
				stumble(c, plugin, "60Gi")

				close(plugin.GoOn)
				placed, rejected := "stumbles", "waits"
				if before {
					placed, rejected = rejected, placed
				}
				c.ExpectNode(placed, "node-1")
				c.ExpectReason(rejected, 1, clustertest.Reserved)
				c.Stays(func(context.Context) error { return c.HasReason(rejected, 1, clustertest.Reserved) })
				driver.Publish()
				c.ExpectNoRoom(rejected, 1)
				c.ExpectNoFailures(driver)
			})
		})
	}
}
