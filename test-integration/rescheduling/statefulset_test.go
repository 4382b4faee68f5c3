// SPDX-License-Identifier: Apache-2.0

package rescheduling

import (
	"fmt"
	"testing"
	"time"

	"capacityv2.internal/test-integration/clustertest"
)

// statefulSet returns the pods of a StatefulSet, whose claims outlive them. It creates the claims, of 100Gi each.
func statefulSet(c *clustertest.Cluster, replicas int) []clustertest.Pod {
	c.Helper()
	var pods []clustertest.Pod
	for i := range replicas {
		pod := clustertest.Pod{Name: fmt.Sprintf("app-%d", i), Claims: []string{fmt.Sprintf("data-app-%d", i)}}
		c.CreateClaim(pod.Claims[0], class, "100Gi")
		pods = append(pods, pod)
	}
	return pods
}

// TestDrainToLargeNode: four pods with volumes of 100Gi are on a node that is drained. One other node has 400Gi, and two have
// 99Gi: all go to that of 400Gi.
func TestDrainToLargeNode(t *testing.T) { clustertest.ForAnyPolicy(t, testDrainToLargeNode) }

func testDrainToLargeNode(t *testing.T, options clustertest.Options) {
	c := start(t, options)
	createNodes(c, 4)
	config := local([]int64{400}, []int64{400}, []int64{99}, []int64{99})
	config.RefreshDelay = time.Second
	driver := c.StartDriver(config)
	others := []string{"node-2", "node-3", "node-4"}
	for _, node := range others {
		c.Cordon(node)
	}
	pods := statefulSet(c, 4)
	for _, pod := range pods {
		c.CreatePod(pod)
		c.ExpectNode(pod.Name, "node-1")
	}
	for _, node := range others {
		c.Uncordon(node)
	}
	drain(c)
	for _, pod := range pods {
		c.CreatePod(pod)
	}
	for _, pod := range pods {
		c.ExpectNode(pod.Name, "node-2")
	}
	expectVolumes(c, driver, 0, 4, 0, 0)
}

// TestRestartMany: 16 pods with volumes of 100Gi on four nodes of 400Gi are deleted and created again. Their driver can
// rebuild volumes elsewhere, and each pod goes back to its node, whether or not another one waits for room.
func TestRestartMany(t *testing.T) { clustertest.ForAnyPolicy(t, testRestartMany) }

func testRestartMany(t *testing.T, options clustertest.Options) {
	c := start(t, options)
	createNodes(c, 4)
	config := local([]int64{400}, []int64{400}, []int64{400}, []int64{400})
	config.RefreshDelay = time.Second
	driver := c.StartDriver(config)
	pods, nodes := statefulSet(c, 16), map[string]string{}
	for _, pod := range pods {
		c.CreatePod(pod)
	}
	for _, pod := range pods {
		nodes[pod.Name] = c.ExpectNode(pod.Name)
	}
	c.CreateClaim("one-more", class, "100Gi")
	c.CreatePod(clustertest.Pod{Name: "one-more", Claims: []string{"one-more"}})
	c.ExpectNoRoom("one-more", 4)
	expectVolumes(c, driver, 4, 4, 4, 4)
	for _, pod := range pods {
		c.DeletePod(pod)
	}
	for _, pod := range pods {
		c.CreatePod(pod)
	}
	for _, pod := range pods {
		c.ExpectNode(pod.Name, nodes[pod.Name])
	}
	c.ExpectNoRoom("one-more", 4)
	expectVolumes(c, driver, 4, 4, 4, 4)
}
