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

	"capacityv2.internal/test-integration/apiservertest"
	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

func TestMain(m *testing.M) { apiservertest.Main(m) }

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

// expectNoFailures checks that the scheduler has asked for no volume where there
// was no room.
func expectNoFailures(c *clustertest.Cluster, driver *modeldriver.Driver) {
	c.Helper()
	if n := driver.Failed(); n != 0 {
		c.Errorf("%d volumes were asked for where there was no room, want none", n)
	}
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

// TestFourVolumesNeedFourDisks: each disk takes one volume, so only the node
// with four disks will do, although another one has more space.
func TestFourVolumesNeedFourDisks(t *testing.T) {
	// The disks of the other nodes are like those of the fourth one, or larger: then these nodes have more space.
	for name, disk := range map[string]int64{"alike": 100, "larger": 199} {
		t.Run(name, func(t *testing.T) {
			clustertest.ForEachPolicy(t, func(t *testing.T, options clustertest.Options) { testFourVolumesNeedFourDisks(t, options, disk) })
		})
	}
}

func testFourVolumesNeedFourDisks(t *testing.T, options clustertest.Options, disk int64) {
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(4)
	driver := c.StartDriver(local([]int64{disk}, []int64{disk, disk}, []int64{disk, disk, disk}, []int64{100, 100, 100, 100}))

	sizes := []string{"100Gi", "100Gi", "100Gi", "100Gi"}
	c.CreatePod(clustertest.Pod{Name: "four", Class: class, Sizes: sizes})
	c.ExpectNode("four", "node-4")

	c.CreatePod(clustertest.Pod{Name: "four-more", Class: class, Sizes: sizes})
	c.ExpectNoRoom("four-more", 4)
	expectNoFailures(c, driver)
}

// TestSmallAndLargeVolume: each node has room for each volume, but only one for
// both.
func TestSmallAndLargeVolume(t *testing.T) { clustertest.ForEachPolicy(t, testSmallAndLargeVolume) }

func testSmallAndLargeVolume(t *testing.T, options clustertest.Options) {
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(3)
	driver := c.StartDriver(local([]int64{109, 5, 5, 5}, []int64{60, 60}, []int64{100, 10}))

	c.CreatePod(clustertest.Pod{Name: "small-and-large", Class: class, Sizes: []string{"10Gi", "100Gi"}})
	c.ExpectNode("small-and-large", "node-3")

	c.CreatePod(clustertest.Pod{Name: "another", Class: class, Sizes: []string{"10Gi", "100Gi"}})
	c.ExpectNoRoom("another", 3)
	expectNoFailures(c, driver)
}

// TestFragmentedNode: the sum of what is free is no place for a volume. One that
// was deleted is.
func TestFragmentedNode(t *testing.T) { clustertest.ForEachPolicy(t, testFragmentedNode) }

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
	expectNoFailures(c, driver)
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
	expectNoFailures(c, driver)
}

// TestSixteenDisks: each of three nodes has 16 disks, of which one is too full. The
// scheduler counts instead of giving up a search.
func TestSixteenDisks(t *testing.T) { clustertest.ForEachPolicyInTurn(t, testSixteenDisks) }

func testSixteenDisks(t *testing.T, options clustertest.Options) {
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(3)
	disks := append(slices.Repeat([]int64{100}, 15), 59)
	driver := c.StartDriver(local(disks, disks, disks))

	before := c.GivenUp()
	c.CreatePod(clustertest.Pod{Name: "sixteen", Class: class, Sizes: slices.Repeat([]string{"60Gi"}, 16)})
	c.ExpectNoRoom("sixteen", 3)
	if got := c.GivenUp() - before; got != 0 {
		c.Errorf("%d searches were given up, want none", got)
	}
	c.CreatePod(clustertest.Pod{Name: "fifteen", Class: class, Sizes: slices.Repeat([]string{"60Gi"}, 15)})
	c.ExpectNode("fifteen")
	expectNoFailures(c, driver)
}

// TestBetaAnnotation: nothing but the annotation names the class of the claim, and more
// than one node has room.
func TestBetaAnnotation(t *testing.T) { clustertest.ForEachPolicy(t, testBetaAnnotation) }

func testBetaAnnotation(t *testing.T, options clustertest.Options) {
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(3)
	driver := c.StartDriver(local([]int64{100}, []int64{100}, []int64{59}))

	c.CreateBetaClaim("fits", class, "60Gi")
	c.CreatePod(clustertest.Pod{Name: "fits", Claims: []string{"fits"}})
	c.ExpectNode("fits", "node-1", "node-2")
	c.CreateBetaClaim("too-large", class, "101Gi")
	c.CreatePod(clustertest.Pod{Name: "too-large", Claims: []string{"too-large"}})
	c.ExpectNoRoom("too-large", 3)
	expectNoFailures(c, driver)
}

// TestMaximumVolumeSize: a driver of today reports 100 GiB, of which a volume
// can have half.
func TestMaximumVolumeSize(t *testing.T) { clustertest.ForEachPolicy(t, testMaximumVolumeSize) }

func testMaximumVolumeSize(t *testing.T, options clustertest.Options) {
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(1)
	config := local([]int64{50, 50})
	config.Report = modeldriver.SumAndLargest
	driver := c.StartDriver(config)

	c.CreatePod(clustertest.Pod{Name: "three-halves", Class: class, Sizes: []string{"50Gi", "50Gi", "50Gi"}})
	c.ExpectNoRoom("three-halves", 1)
	c.CreatePod(clustertest.Pod{Name: "too-large", Class: class, Sizes: []string{"51Gi"}})
	c.ExpectNoRoom("too-large", 1)
	c.CreatePod(clustertest.Pod{Name: "two-halves", Class: class, Sizes: []string{"50Gi", "50Gi"}})
	c.ExpectNode("two-halves", "node-1")
	expectNoFailures(c, driver)
}

// TestConstantCapacity: a driver whose numbers never change, as with thin
// provisioning, gets all its pods scheduled, each of which fits. Each waits until
// the reservation of the one before has expired, unless the driver confirms.
func TestConstantCapacity(t *testing.T) {
	for _, confirming := range []bool{false, true} {
		t.Run(fmt.Sprintf("confirming=%t", confirming), func(t *testing.T) {
			clustertest.ForEachPolicy(t, func(t *testing.T, options clustertest.Options) {
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
		if i > 0 && !confirming {
			c.ExpectReason(name, 1, clustertest.Reserved)
		}
		c.ExpectNode(name, "node-1")
	}
	// The timeout begins when a volume was created, which is known to the second.
	if took, least := time.Since(begin), (pods-1)*(timeout-time.Second); !confirming && took < least {
		c.Errorf("the pods had nodes after %v, want %v at least", took, least)
	}
	expectNoFailures(c, driver)
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

// TestZoneWideCapacity: all nodes of a zone share an object.
func TestZoneWideCapacity(t *testing.T) { clustertest.ForEachPolicy(t, testZoneWideCapacity) }

func testZoneWideCapacity(t *testing.T, options clustertest.Options) {
	c := clustertest.StartWith(ktesting.Init(t), options)
	createZones(c)
	driver := c.StartDriver(modeldriver.Config{Name: "zones.example.com", Classes: []string{class}, Segments: []modeldriver.Segment{
		{Labels: map[string]string{zone: "a"}, Pools: modeldriver.GiB(119, 59)},
		{Labels: map[string]string{zone: "b"}, Pools: modeldriver.GiB(60, 60)},
	}})

	c.CreatePod(clustertest.Pod{Name: "zone-a", Class: class, Sizes: []string{"60Gi", "60Gi"}, NodeSelector: map[string]string{zone: "a"}})
	c.ExpectNoRoom("zone-a", 2)
	c.CreatePod(clustertest.Pod{Name: "any-zone", Class: class, Sizes: []string{"60Gi", "60Gi"}})
	c.ExpectNode("any-zone", "node-3", "node-4")
	expectNoFailures(c, driver)
}

// TestTopologySpread: zones in which a pod has no room for all of its volumes count
// as those that it may spread over. So the second pod waits instead of having both
// in one zone.
func TestTopologySpread(t *testing.T) { clustertest.ForEachPolicy(t, testTopologySpread) }

func testTopologySpread(t *testing.T, options clustertest.Options) {
	c := clustertest.StartWith(ktesting.Init(t), options)
	createZones(c)
	driver := c.StartDriver(modeldriver.Config{Name: "zones.example.com", Classes: []string{class}, Segments: []modeldriver.Segment{
		{Labels: map[string]string{zone: "a"}, Pools: modeldriver.GiB(119, 59)},
		{Labels: map[string]string{zone: "b"}, Pools: modeldriver.GiB(60, 60, 60, 60)},
	}})
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
	expectNoFailures(c, driver)
}

// TestCapacityOfEveryNode: an empty topology selects every node.
func TestCapacityOfEveryNode(t *testing.T) { clustertest.ForEachPolicy(t, testCapacityOfEveryNode) }

func testCapacityOfEveryNode(t *testing.T, options clustertest.Options) {
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(2)
	driver := c.StartDriver(modeldriver.Config{Name: "shared.example.com", Classes: []string{class}, Segments: []modeldriver.Segment{
		{Pools: modeldriver.GiB(50, 50)},
	}})

	c.CreatePod(clustertest.Pod{Name: "pending", Class: class, Sizes: []string{"50Gi", "50Gi", "50Gi"}})
	c.ExpectNoRoom("pending", 2)
	c.CreatePod(clustertest.Pod{Name: "fits", Class: class, Sizes: []string{"50Gi", "50Gi"}})
	c.ExpectNode("fits")
	expectNoFailures(c, driver)
}
