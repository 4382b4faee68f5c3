// SPDX-License-Identifier: Apache-2.0

package rescheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"capacityv2.internal/test-integration/clustertest"
)

// TestVolumesThatStay: a pod that belongs to a node needs no room there for the
// volume that it has. And nobody has selected a node for a claim that was bound
// before there was a pod, so there is none that its volume would have to leave.
// Neither is changed. Beside them, a pod waits for room, and goes back to its volume
// when the node can be used again.
func TestVolumesThatStay(t *testing.T) { clustertest.ForAnyPolicy(t, testVolumesThatStay) }

func testVolumesThatStay(t *testing.T, options clustertest.Options) {
	c := start(t, options)
	createNodes(c, 2)
	driver := c.StartDriver(local([]int64{60, 60}, []int64{10}))
	startApp(c, "60Gi")
	c.CreateClaim("data-agent", class, "60Gi")
	agent := clustertest.Pod{Name: "agent", Claims: []string{"data-agent"}, With: daemonOf("node-1")}
	c.CreatePod(agent)
	c.ExpectNode("agent", "node-1")
	createImmediate(c, "data-immediate", "60Gi")
	var histories []*history
	for _, claim := range []string{"data-app-0", "data-agent", "data-immediate"} {
		histories = append(histories, observe(c, claim))
	}

	drain(c)
	c.CreatePod(app)
	c.ExpectNoRoom(app.Name, 1)
	c.CreatePod(agent)
	c.ExpectNode("agent", "node-1")
	c.CreatePod(clustertest.Pod{Name: "immediate", Claims: []string{"data-immediate"}})
	c.ExpectNode("immediate", "node-2")

	c.Uncordon("node-1")
	c.ExpectNode(app.Name, "node-1")
	expectAffinity(c, "node-1")
	for _, h := range histories {
		h.expectUntouched(c)
	}
	expectVolumes(c, driver, 2, 0)
}

// daemonOf makes a pod one of a DaemonSet for a node, which tolerates a cordon.
func daemonOf(node string) func(*st.PodWrapper) {
	return func(pod *st.PodWrapper) {
		pod.Toleration(corev1.TaintNodeUnschedulable).NodeAffinityIn(metav1.ObjectNameField, []string{node}, st.NodeSelectorTypeMatchFields)
	}
}

// createImmediate creates a claim, of the driver that can rebuild volumes, that gets
// bound at once, and its volume.
func createImmediate(c *clustertest.Cluster, claim, size string) {
	c.Helper()
	const class = "immediate"
	_, err := c.Client().StorageV1().StorageClasses().Create(c, &storagev1.StorageClass{
		ObjectMeta:        metav1.ObjectMeta{Name: class},
		Provisioner:       driverName,
		VolumeBindingMode: new(storagev1.VolumeBindingImmediate),
	}, metav1.CreateOptions{})
	c.ExpectNoError(err, "create class")
	c.CreateVolume("immediate", class, driverName, size, func(pv *st.PersistentVolumeWrapper) {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: c.Namespace, Name: claim}
	})
	c.CreateClaim(claim, class, size)
}
