// SPDX-License-Identifier: Apache-2.0

// Package rescheduling tests from outside what happens to pods with bound volumes
// whose nodes cannot be used any more, with a driver that can rebuild the volumes
// elsewhere.
package rescheduling

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

func TestMain(m *testing.M) { clustertest.Main(m, "MutablePVNodeAffinity") }

const (
	// class is the storage class of a driver that can rebuild volumes.
	class      = "rebuilt"
	driverName = "rebuilds.example.com"
)

// start starts a control plane in which drivers may change the node affinity of
// volumes.
func start(t *testing.T, options clustertest.Options) *clustertest.Cluster {
	t.Helper()
	return clustertest.StartWith(ktesting.Init(t), options)
}

// local returns the disks of a driver that can rebuild volumes: node-1 has the first pools, and
// so on. The sizes are in GiB.
func local(nodes ...[]int64) modeldriver.Config {
	config := modeldriver.Config{Name: driverName, Classes: []string{class}, Rebuilding: true}
	for i, sizes := range nodes {
		config.Segments = append(config.Segments, modeldriver.Segment{
			Labels: clustertest.OnNode(fmt.Sprintf("node-%d", i+1)),
			Pools:  modeldriver.GiB(sizes...),
		})
	}
	return config
}

// app is a pod of a StatefulSet: its claim outlives it.
var app = clustertest.Pod{Name: "app-0", Claims: []string{"data-app-0"}}

// startApp starts app on node-1, with a volume of this size.
func startApp(c *clustertest.Cluster, size string) {
	c.Helper()
	c.CreateClaim(app.Claims[0], class, size)
	first := app
	first.NodeSelector = clustertest.OnNode("node-1")
	c.CreatePod(first)
	c.ExpectNode(app.Name, "node-1")
}

// startAtHome starts a control plane, with nodes that have the pools of a driver, and
// app on node-1 with a volume of this size.
func startAtHome(t *testing.T, options clustertest.Options, size string, config modeldriver.Config) (*clustertest.Cluster, *modeldriver.Driver, *history) {
	t.Helper()
	c := start(t, options)
	createNodes(c, len(config.Segments))
	driver := c.StartDriver(config)
	startApp(c, size)
	return c, driver, observe(c, app.Claims[0])
}

// startCopying is startAtHome for a volume of a drained node that is being copied to node-2
// for app, and takes its time.
func startCopying(t *testing.T, options clustertest.Options) (*clustertest.Cluster, *modeldriver.Driver, *history) {
	t.Helper()
	c, driver, data := startAtHome(t, options, "100Gi", local([]int64{100}, []int64{100}))
	driver.Slow(true)
	drain(c)
	c.CreatePod(app)
	c.ExpectNode(app.Name, "node-2")
	expectCopies(c, driver, "node-1", "node-2")
	return c, driver, data
}

// drain cordons node-1 and evicts its pods.
func drain(c *clustertest.Cluster) {
	c.Helper()
	c.Cordon("node-1")
	c.Evict("node-1")
}

// expectVolumes checks how many volumes the nodes have, and that the scheduler has
// asked for none where there was no room.
func expectVolumes(c *clustertest.Cluster, driver *modeldriver.Driver, want ...int) {
	c.Helper()
	c.Eventually(func(context.Context) error {
		if got := driver.Volumes(); !slices.Equal(got, want) {
			return fmt.Errorf("volumes of the nodes: %v, want %v", got, want)
		}
		return nil
	})
	c.ExpectNoFailures(driver)
}

// startHolding starts a control plane whose scheduler stops before it binds a pod to
// node-2: before all other plugins, or after them.
func startHolding(t *testing.T, options clustertest.Options, before bool) (*clustertest.Cluster, *clustertest.Hold) {
	t.Helper()
	hold := clustertest.NewHold(func(_ *corev1.Pod, node string) bool { return node == "node-2" })
	return start(t, hold.AddTo(options, before)), hold
}

// createNodes also does what kubelets do with a driver that knows about topology.
func createNodes(c *clustertest.Cluster, n int) {
	c.Helper()
	c.CreateNodes(n)
	for i := range n {
		c.CreateCSINode(driverName, fmt.Sprintf("node-%d", i+1), clustertest.NodeLabel)
	}
}
