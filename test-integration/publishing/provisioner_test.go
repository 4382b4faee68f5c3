// SPDX-License-Identifier: Apache-2.0

package publishing

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

const (
	class = "central"
	// nodeLabel has the name of a node, and is the topology of the driver.
	nodeLabel = "topology.central.example.com/node"
	// places is how many volumes fit on a node, volumeSize what each takes, in GiB.
	places, volumeSize = 2, 10
	// limit is how long pods may take to get nodes. It is longer than the timeout of
	// reservations.
	limit = 5 * time.Minute
)

// variant is a provisioner.
type variant struct {
	qps         int  // how often it may write capacity in a second
	unconfirmed bool // it does not confirm
}

// createDriver creates nodes with so many bytes each, a driver on them, and its classes.
func createDriver(c *clustertest.Cluster, nodes int, bytes int64, classes ...string) *modeldriver.Driver {
	c.Helper()
	config := modeldriver.Config{Name: "central.example.com", Classes: classes}
	for i := range nodes {
		config.Segments = append(config.Segments, modeldriver.Segment{Labels: map[string]string{nodeLabel: fmt.Sprintf("node-%d", i+1)}, Pools: []int64{bytes}})
	}
	d := c.Install(config)
	for _, segment := range d.Segments {
		c.CreateNodeOf(d.Name, segment.Name(), segment, nil)
	}
	return d
}

// startProvisioner starts the driver, and the provisioner beside it, which connects to server.
func startProvisioner(
	c *clustertest.Cluster, d *modeldriver.Driver, v variant, server *rest.Config, more ...string,
) *clustertest.Process {
	c.Helper()
	flags := []string{
		"--kubeconfig=" + clustertest.Kubeconfig(c.TContext.TContext, server, ""), "--timeout=1m",
		fmt.Sprintf("--kube-api-capacity-qps=%d", v.qps), fmt.Sprintf("--kube-api-capacity-burst=%d", v.qps),
	}
	if !v.unconfirmed {
		flags = append(flags, "--capacity-confirmation")
	}
	return c.StartProvisioner(d, "", clustertest.Program(c.TContext.TContext, "COMPONENTS", "csi-provisioner"), append(flags, more...)...)
}

// expectFull checks that each node has as many volumes as there are places.
func expectFull(t *testing.T, d *modeldriver.Driver) {
	t.Helper()
	if got, want := d.Volumes(), slices.Repeat([]int{places}, len(d.Segments)); !slices.Equal(got, want) {
		t.Errorf("volumes of the nodes: %v, want %v", got, want)
	}
}
