package scheduling

import (
	"testing"
)

// TestFailedBindingAfterProvisioning: the volume of a pod that fails to bind exists,
// so the pod that waits for the capacity goes on waiting for a refresh.
func TestFailedBindingAfterProvisioning(t *testing.T) {
	c, plugin := startStumbling(t, false)
	c.CreateNodes(1)
	driver := c.StartDriver(unpublished([]int64{100}))
	stumble(c, plugin, "60Gi")

	close(plugin.GoOn)
	c.ExpectNode("stumbles", "node-1")
	driver.Publish()
	c.ExpectNoRoom("waits", 1)
	expectNoFailures(c, driver)
}
