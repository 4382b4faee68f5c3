package scheduling

import (
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

// TestFailedBindingEndsReservation: a pod that fails to bind before a volume was
// asked for gives the capacity back, and the pod that waits for it goes on without
// a refresh.
func TestFailedBindingEndsReservation(t *testing.T) {
	clustertest.ForEachPolicy(t, testFailedBindingEndsReservation)
}

func testFailedBindingEndsReservation(t *testing.T, options clustertest.Options) {
	c, plugin := startStumbling(t, options, true)
	c.CreateNodes(1)
	driver := c.StartDriver(unpublished([]int64{100}))
	stumble(c, plugin, "60Gi")

	close(plugin.GoOn)
	c.ExpectNode("waits", "node-1")
	c.ExpectReason("stumbles", 1, clustertest.Reserved)
	driver.Publish()
	c.ExpectNoRoom("stumbles", 1)
	expectNoFailures(c, driver)
}

// TestFailedBindingAfterProvisioning: the volume of a pod that fails to bind exists,
// so the pod that waits for the capacity goes on waiting for a refresh.
func TestFailedBindingAfterProvisioning(t *testing.T) {
	clustertest.ForEachPolicy(t, testFailedBindingAfterProvisioning)
}

func testFailedBindingAfterProvisioning(t *testing.T, options clustertest.Options) {
	c, plugin := startStumbling(t, options, false)
	c.CreateNodes(1)
	driver := c.StartDriver(unpublished([]int64{100}))
	stumble(c, plugin, "60Gi")

	close(plugin.GoOn)
	c.ExpectNode("stumbles", "node-1")
	driver.Publish()
	c.ExpectNoRoom("waits", 1)
	expectNoFailures(c, driver)
}
