// SPDX-License-Identifier: Apache-2.0

// Package scheduling tests from outside where the scheduler puts pods with new
// volumes, with drivers that really have the space that they publish, or not.
package scheduling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// class is the storage class of tests that need only one.
const class = "pooled"

// local returns a driver with local storage: node-1 has the first pools, and so
// on. The sizes are in GiB.
func local(nodes ...[]int64) modeldriver.Config {
	config := modeldriver.Config{Name: "pools.example.com", Classes: []string{class}}
	for i, sizes := range nodes {
		config.Segments = append(config.Segments, modeldriver.Segment{
			Labels: clustertest.OnNode(fmt.Sprintf("node-%d", i+1)),
			Pools:  modeldriver.GiB(sizes...),
		})
	}
	return config
}

// unpublished returns the same driver, which publishes what is left only when the
// test says so.
func unpublished(nodes ...[]int64) modeldriver.Config {
	config := local(nodes...)
	config.RefreshDelay = time.Hour
	return config
}

// expectFailures waits until the scheduler has asked for a volume where there was
// no room. With the feature gate off, it has to; otherwise the same test with the
// gate on would prove nothing.
func expectFailures(c *clustertest.Cluster, driver *modeldriver.Driver) {
	c.Helper()
	c.Eventually(func(context.Context) error {
		if driver.Failed() == 0 {
			return errors.New("no volume was asked for where there was no room, want some with the gate off")
		}
		return nil
	})
}

// place is what has to become of a pod: it gets the node, or, without one, waits because so many have no room.
type place struct {
	pod  clustertest.Pod
	node string
	full int
}

// volumes returns a pod with volumes of the class.
func volumes(name string, sizes ...string) clustertest.Pod {
	return clustertest.Pod{Name: name, Class: class, Sizes: sizes}
}

// testPlaces starts a control plane with the nodes of a driver, and creates pods one after the other.
func testPlaces(t *testing.T, options clustertest.Options, config modeldriver.Config, places ...place) {
	t.Helper()
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(len(config.Segments))
	driver := c.StartDriver(config)
	for _, p := range places {
		c.CreatePod(p.pod)
		if p.full > 0 {
			c.ExpectNoRoom(p.pod.Name, p.full)
		} else {
			c.ExpectNode(p.pod.Name, p.node)
		}
	}
	c.ExpectNoFailures(driver)
}

// TestFourVolumesNeedFourDisks: each disk takes one volume, so only the node
// with four disks will do, although another one has more space.
func TestFourVolumesNeedFourDisks(t *testing.T) {
	clustertest.ForAnyPolicy(t, func(t *testing.T, options clustertest.Options) {
		sizes := []string{"100Gi", "100Gi", "100Gi", "100Gi"}
		testPlaces(t, options, local([]int64{199}, []int64{199, 199}, []int64{199, 199, 199}, []int64{100, 100, 100, 100}),
			place{pod: volumes("four", sizes...), node: "node-4"},
			place{pod: volumes("four-more", sizes...), full: 4})
	})
}

// TestFragmentedNode: the sum of what is free is no place for a volume. One that
// was deleted is.
func TestFragmentedNode(t *testing.T) { clustertest.ForAnyPolicy(t, testFragmentedNode) }

func testFragmentedNode(t *testing.T, options clustertest.Options) {
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(1)
	driver := c.StartDriver(local([]int64{60, 60, 60}))

	first := clustertest.Pod{Name: "first", Class: class, Sizes: []string{"40Gi"}}
	c.CreatePod(first)
	c.ExpectNode("first")

	// 20, 60 and 60 GiB are free.
	c.CreatePod(clustertest.Pod{Name: "pending", Class: class, Sizes: []string{"40Gi", "40Gi", "40Gi"}})
	c.ExpectNoRoom("pending", 1)

	c.DeletePod(first)
	c.ExpectNode("pending", "node-1")
	c.ExpectNoFailures(driver)
}

// TestSixteenVolumesOnFourNodes: 16 pods of one volume fill four nodes of four
// pools, with a driver that publishes late. One more waits.
func TestSixteenVolumesOnFourNodes(t *testing.T) {
	for name, pools := range map[string][]int64{"one disk": {400}, "four disks": {100, 100, 100, 100}} {
		t.Run(name, func(t *testing.T) {
			clustertest.ForEachPolicy(t, func(t *testing.T, options clustertest.Options) { testSixteenVolumesOnFourNodes(t, options, pools) })
		})
	}
}

func testSixteenVolumesOnFourNodes(t *testing.T, options clustertest.Options, pools []int64) {
	options.ReservationTimeout = 600
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(4)
	config := local(pools, pools, pools, pools)
	config.RefreshDelay = time.Second
	// Reports come after the last pod, however slow the scheduler is. With Object, or several disks, pods wait for them.
	late := !c.IsObject() && len(pools) == 1
	if late {
		config.RefreshDelay = time.Hour
	}
	driver := c.StartDriver(config)

	for i := range 16 {
		c.CreatePod(clustertest.Pod{Name: fmt.Sprintf("pod-%d", i), Class: class, Sizes: []string{"100Gi"}})
	}
	for i := range 16 {
		c.ExpectNode(fmt.Sprintf("pod-%d", i))
	}
	if got := driver.Volumes(); !slices.Equal(got, []int{4, 4, 4, 4}) {
		c.Errorf("volumes of the nodes: %v, want 4 each", got)
	}
	c.CreatePod(clustertest.Pod{Name: "one-more", Class: class, Sizes: []string{"100Gi"}})
	if late {
		c.ExpectReason("one-more", 4, clustertest.Reserved)
		driver.Publish()
	}
	c.ExpectNoRoom("one-more", 4)
	c.ExpectNoFailures(driver)
}

// TestMaximumVolumeSize: a driver of today reports 100 GiB, of which a volume
// can have half.
func TestMaximumVolumeSize(t *testing.T) {
	clustertest.ForAnyPolicy(t, func(t *testing.T, options clustertest.Options) {
		config := local([]int64{50, 50})
		config.Report = modeldriver.SumAndLargest
		testPlaces(t, options, config,
			place{pod: volumes("three-halves", "50Gi", "50Gi", "50Gi"), full: 1},
			place{pod: volumes("too-large", "51Gi"), full: 1},
			place{pod: volumes("two-halves", "50Gi", "50Gi"), node: "node-1"})
	})
}

// TestConstantCapacity: a driver whose numbers never change, as with thin
// provisioning, gets all its pods scheduled, each of which fits. Each waits until
// the reservation of the one before has expired, unless the driver confirms.
func TestConstantCapacity(t *testing.T) {
	for _, confirming := range []bool{false, true} {
		t.Run(fmt.Sprintf("confirming=%t", confirming), func(t *testing.T) {
			clustertest.ForAnyPolicy(t, func(t *testing.T, options clustertest.Options) {
				testConstantCapacity(t, options, confirming)
			})
		})
	}
}

func testConstantCapacity(t *testing.T, options clustertest.Options, confirming bool) {
	const timeout, pods = 2 * time.Second, 3
	if !confirming {
		options.ReservationTimeout = int64(timeout.Seconds())
	}
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(1)
	config := local([]int64{100, 100})
	config.Thin, config.Confirming = true, confirming
	driver := c.StartDriver(config)

	c.CreatePod(clustertest.Pod{Name: "never", Class: class, Sizes: []string{"60Gi", "60Gi", "60Gi"}})
	c.ExpectNoRoom("never", 1)
	begin := time.Now()
	for i := range pods {
		name := fmt.Sprintf("pod-%d", i)
		c.CreatePod(clustertest.Pod{Name: name, Class: class, Sizes: []string{"60Gi", "60Gi"}})
		c.ExpectNode(name, "node-1")
	}
	// The timeout begins when a volume was created, which is known to the second.
	if took, least := time.Since(begin), (pods-1)*(timeout-time.Second); !confirming && took < least {
		c.Errorf("the pods had nodes after %v, want %v at least", took, least)
	}
	c.ExpectNoFailures(driver)
}

// zone is the label of nodes with the same storage.
const zone = "topology.kubernetes.io/zone"

// createZones creates two nodes in zone a, and two in zone b.
func createZones(c *clustertest.Cluster) {
	c.Helper()
	for i, name := range []string{"a", "a", "b", "b"} {
		c.CreateNode(fmt.Sprintf("node-%d", i+1), map[string]string{zone: name})
	}
}

// zones returns a driver with storage for each zone.
func zones(a, b []int64) modeldriver.Config {
	return modeldriver.Config{Name: "zones.example.com", Classes: []string{class}, Segments: []modeldriver.Segment{
		{Labels: map[string]string{zone: "a"}, Pools: modeldriver.GiB(a...)},
		{Labels: map[string]string{zone: "b"}, Pools: modeldriver.GiB(b...)},
	}}
}

// TestTopologySpread: zones in which a pod has no room for all of its volumes count
// as those that it may spread over. So the second pod waits instead of having both
// in one zone.
func TestTopologySpread(t *testing.T) { clustertest.ForAnyPolicy(t, testTopologySpread) }

func testTopologySpread(t *testing.T, options clustertest.Options) {
	c := clustertest.StartWith(ktesting.Init(t), options)
	createZones(c)
	driver := c.StartDriver(zones([]int64{119, 59}, []int64{60, 60, 60, 60}))
	spread := func(pod *st.PodWrapper) {
		pod.Label("app", "spread").SpreadConstraint(1, zone, corev1.DoNotSchedule, st.MakeLabelSelector().Label("app", "spread").Obj(), nil, nil, nil, nil)
	}

	c.CreatePod(clustertest.Pod{Name: "first", Class: class, Sizes: []string{"60Gi", "60Gi"}, With: spread})
	c.ExpectNode("first", "node-3", "node-4")
	c.CreatePod(clustertest.Pod{Name: "second", Class: class, Sizes: []string{"60Gi", "60Gi"}, With: spread})
	c.ExpectReason("second", 2, podtopologyspread.ErrReasonConstraintsNotMatch)
	c.ExpectNoRoom("second", 2)
	driver.Resize("a", 1, 1<<30)
	c.ExpectNode("second", "node-1", "node-2")
	c.ExpectNoFailures(driver)
}
