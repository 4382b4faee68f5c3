package rescheduling

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"capacityv2.internal/test-integration/clustertest"
)

// TestUncordonBeforeBinding: a decision is not carried out if the volume can stay
// after all.
func TestUncordonBeforeBinding(t *testing.T) { clustertest.ForEachPolicy(t, testUncordonBeforeBinding) }

func testUncordonBeforeBinding(t *testing.T, options clustertest.Options) {
	c, binding := startHolding(t, options, "node-2", true)
	createNodes(c, 2)
	driver := c.StartDriver(local([]int64{100}, []int64{100}))
	startApp(c, "100Gi")
	data := observe(c, "data-app-0")
	drain(c)
	c.CreatePod(app)
	binding.Wait(c)

	c.Uncordon("node-1")
	expectAffinity(c, "data-app-0", "node-1")
	// The scheduler knows that the node can be used.
	c.CreatePod(clustertest.Pod{Name: "probe", NodeSelector: clustertest.OnNode("node-1")})
	c.ExpectNode("probe", "node-1")
	close(binding.GoOn)

	c.ExpectNode(app.Name, "node-1")
	data.expectUntouched(c)
	expectVolumes(c, driver, 1, 0)
	expectEvents(c)
}

// TestClaimChangesBeforeBinding: a decision for a claim that somebody else has
// written meanwhile is made again.
func TestClaimChangesBeforeBinding(t *testing.T) {
	clustertest.ForEachPolicy(t, testClaimChangesBeforeBinding)
}

func testClaimChangesBeforeBinding(t *testing.T, options clustertest.Options) {
	c, binding := startHolding(t, options, "node-2", true)
	createNodes(c, 2)
	driver := c.StartDriver(local([]int64{100}, []int64{100}))
	startApp(c, "100Gi")
	data := observe(c, "data-app-0")
	drain(c)
	c.CreatePod(app)
	binding.Wait(c)

	_, err := c.Client().CoreV1().PersistentVolumeClaims(c.Namespace).Patch(c, "data-app-0", types.MergePatchType,
		[]byte(`{"metadata": {"labels": {"owner": "somebody"}}}`), metav1.PatchOptions{})
	c.ExpectNoError(err, "label claim")
	close(binding.GoOn)

	c.ExpectNode(app.Name, "node-2")
	data.expect(c, "node-1", "node-2")
	if owner := c.Claim("data-app-0").Labels["owner"]; owner != "somebody" {
		c.Errorf("claim has the owner %q, want what somebody wrote", owner)
	}
	expectVolumes(c, driver, 0, 1)
	expectEvents(c, "PersistentVolumeClaim/data-app-0", "Pod/app-0")
}

// TestFailedBindingBeforeRebuild: binding a pod fails after another node was selected
// for its claim, and before the driver is asked to rebuild the volume there. The node
// that the pod would rather use has no room.
func TestFailedBindingBeforeRebuild(t *testing.T) {
	clustertest.ForEachPolicy(t, testFailedBindingBeforeRebuild)
}

func testFailedBindingBeforeRebuild(t *testing.T, options clustertest.Options) {
	c, binding := startHolding(t, options, "node-2", false)
	binding.Fail = errors.New("fails once")
	createNodes(c, 3)
	driver := c.StartDriver(local([]int64{100}, []int64{100}, []int64{99}))
	startApp(c, "100Gi")
	data := observe(c, "data-app-0")
	drain(c)
	c.CreatePod(preferring(app, "node-3"))
	binding.Wait(c)
	data.expect(c, "node-1", "node-2")

	close(binding.GoOn)
	c.ExpectNode(app.Name, "node-2")
	expectVolumes(c, driver, 0, 1, 0)
}
