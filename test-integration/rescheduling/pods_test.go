// SPDX-License-Identifier: Apache-2.0

package rescheduling

import (
	"fmt"
	"testing"
	"time"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// TestMixedPod: the volume that has to be rebuilt and a new one need room on the
// same node, in pools of their own. A third volume can be used everywhere.
func TestMixedPod(t *testing.T) { clustertest.ForAnyPolicyInTurn(t, testMixedPod) }

func testMixedPod(t *testing.T, options clustertest.Options) {
	c := start(t, options)
	createNodes(c, 3)
	driver := c.StartDriver(local([]int64{60}, []int64{119}, []int64{60, 59}))
	network := c.StartDriver(modeldriver.Config{Name: "network.example.com", Classes: []string{"network"}, Untracked: true,
		Segments: []modeldriver.Segment{{Pools: modeldriver.GiB(60)}}})
	c.CreateClaim("network", "network", "60Gi")
	c.CreateClaim("rebuilt", class, "60Gi")
	pod := clustertest.Pod{Name: "mixed", Claims: []string{"network", "rebuilt"}, NodeSelector: clustertest.OnNode("node-1")}
	c.CreatePod(pod)
	c.ExpectNode("mixed", "node-1")
	rebuilt, everywhere, rescheduled := observe(c, "rebuilt"), observe(c, "network"), c.Rescheduled()

	drain(c)
	c.CreateClaim("new", class, "60Gi")
	pod.Claims, pod.NodeSelector = append(pod.Claims, "new"), nil
	c.CreatePod(pod)
	c.ExpectNoRoom("mixed", 2)

	driver.Resize("node-3", 1, 1<<30)
	c.ExpectNode("mixed", "node-3")
	rebuilt.expect(c, "node-1", "node-3")
	everywhere.expectUntouched(c)
	observe(c, "new").expect(c, "node-3")
	expectVolumes(c, driver, 0, 0, 2)
	expectVolumes(c, network, 1)
	expectEvents(c, "PersistentVolumeClaim/rebuilt", "Pod/mixed")
	if got := c.Rescheduled() - rescheduled; got != 1 {
		c.Errorf("%d claims were rescheduled, want 1", got)
	}
}

// TestRace: there is room for the volume of one of two pods.
func TestRace(t *testing.T) { clustertest.ForAnyPolicy(t, testRace) }

func testRace(t *testing.T, options clustertest.Options) {
	c := start(t, options)
	createNodes(c, 2)
	config := local([]int64{50, 50}, []int64{49})
	// Only when the test says so.
	config.RefreshDelay = time.Hour
	driver := c.StartDriver(config)
	var pods []clustertest.Pod
	for i := range 2 {
		pod := clustertest.Pod{Name: fmt.Sprintf("app-%d", i), Claims: []string{fmt.Sprintf("data-app-%d", i)}}
		pods = append(pods, pod)
		c.CreateClaim(pod.Claims[0], class, "50Gi")
		c.CreatePod(pod)
		c.ExpectNode(pod.Name, "node-1")
		driver.Publish()
	}
	drain(c)
	histories := map[string]*history{}
	for _, pod := range pods {
		histories[pod.Name] = observe(c, pod.Claims[0])
		c.CreatePod(pod)
		c.ExpectNoRoom(pod.Name, 1)
	}

	driver.Resize("node-2", 0, 1<<30)
	driver.Publish()
	c.WaitForPlaced(1)
	placed, err := c.Placed(c)
	c.ExpectNoError(err, "list pods")
	for _, pod := range pods {
		if node, ok := placed[pod.Name]; ok {
			histories[pod.Name].expect(c, "node-1", node)
			continue
		}
		c.ExpectReason(pod.Name, 1, clustertest.Reserved)
		expectVolumes(c, driver, 1, 1)
		driver.Publish()
		c.ExpectNoRoom(pod.Name, 1)
		histories[pod.Name].expectUntouched(c)
	}
	if len(placed) != 1 || placed[pods[0].Name]+placed[pods[1].Name] != "node-2" {
		c.Errorf("nodes of the pods: %v, want node-2 for one", placed)
	}
}
