// SPDX-License-Identifier: Apache-2.0

package rescheduling

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"capacityv2.internal/test-integration/clustertest"
)

// replicas are two pods of a Deployment that share a claim.
var replicas = []clustertest.Pod{{Name: "replica-0", Claims: app.Claims}, {Name: "replica-1", Claims: app.Claims}}

// TestSharedClaim: two pods that share a claim go to the same node, one after the other.
// When only one of them is evicted, it waits for the node of the other one.
func TestSharedClaim(t *testing.T) { clustertest.ForAnyPolicy(t, testSharedClaim) }

func testSharedClaim(t *testing.T, options clustertest.Options) {
	c, driver, data := startAtHome(t, options, "100Gi", local([]int64{100}, []int64{99}, []int64{99}))
	c.DeletePod(app)
	for _, replica := range replicas {
		c.CreatePod(replica)
		c.ExpectNode(replica.Name, "node-1")
	}
	c.Cordon("node-1")
	expectReleased(c, "node-1")
	c.DeletePod(replicas[0])
	c.CreatePod(replicas[0])
	c.ExpectReason(replicas[0].Name, 2, clustertest.VolumeInUse("node-1"))

	c.DeletePod(replicas[1])
	c.CreatePod(replicas[1])
	for _, replica := range replicas {
		c.ExpectNoRoom(replica.Name, 2)
	}
	data.expectUntouched(c)
	driver.Resize("node-3", 0, 1<<30)
	for _, replica := range replicas {
		c.ExpectNode(replica.Name, "node-3")
	}
	data.expect(c, "node-1", "node-3")
	expectAffinity(c, "node-3")
	expectVolumes(c, driver, 0, 0, 1)
}

// TestSharedClaimFailedBinding: the first of two pods that share a claim is not bound after
// all. The second one is, by the same scheduler or another one, and the claim stays sent to
// its node.
func TestSharedClaimFailedBinding(t *testing.T) {
	for name, node := range map[string]string{"same-scheduler": "", "another": "node-2"} {
		t.Run(name, func(t *testing.T) {
			clustertest.ForAnyPolicy(t, func(t *testing.T, options clustertest.Options) { testSharedClaimFailedBinding(t, options, node) })
		})
	}
}

func testSharedClaimFailedBinding(t *testing.T, options clustertest.Options, node string) {
	hold := clustertest.NewHold(func(pod *corev1.Pod, node string) bool { return pod.Name == replicas[0].Name && node == "node-2" })
	hold.Fail = errors.New("fails once")
	c := start(t, hold.AddTo(options, false))
	createNodes(c, 2)
	driver := c.StartDriver(local([]int64{100}, []int64{100}))
	startApp(c, "100Gi")
	data := observe(c, "data-app-0")
	drain(c)
	expectReleased(c, "node-1")
	driver.Pause(true)
	c.CreatePod(replicas[0])
	hold.Wait(c)
	second := replicas[1]
	second.With = func(pod *st.PodWrapper) { pod.Node(node) }
	c.CreatePod(second)
	c.ExpectNode(second.Name, "node-2")
	close(hold.GoOn)
	// Nobody knows yet whether the node has refused.
	c.ExpectReason(replicas[0].Name, 1, clustertest.VolumeAwaited("node-2"))

	driver.Pause(false)
	expectAffinity(c, "node-2")
	c.ExpectNode(replicas[0].Name, "node-2")
	data.expect(c, "node-1", "node-2")
	expectVolumes(c, driver, 0, 1)
}
