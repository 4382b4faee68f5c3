// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// withAndWithout runs a test with each policy, and with the feature gate off. There
// the same pods have to get nodes without room, otherwise the test proves nothing.
func withAndWithout(t *testing.T, test func(*testing.T, clustertest.Options)) {
	t.Helper()
	clustertest.ForAnyPolicyInTurn(t, test)
	t.Run("gate-off", func(t *testing.T) { test(t, clustertest.Options{GateOff: true}) })
}

// TestStaleCapacity is Story 2 of the KEP: 10 pods of 20 GiB, a node of 100 GiB,
// and a driver that publishes late. Five get the node, and five wait.
func TestStaleCapacity(t *testing.T) {
	withAndWithout(t, func(t *testing.T, options clustertest.Options) {
		c := clustertest.StartWith(ktesting.Init(t), options)
		c.CreateNodes(1)
		driverConfig := local([]int64{100})
		driverConfig.RefreshDelay = time.Second
		driver := c.StartDriver(driverConfig)
		const pods = 10
		for i := range pods {
			c.CreatePod(clustertest.Pod{Name: fmt.Sprintf("pod-%d", i), Class: class, Sizes: []string{"20Gi"}})
		}
		if options.GateOff {
			expectFailures(c, driver)
			return
		}
		c.WaitForPlaced(5)
		driver.Publish()
		placed, err := c.Placed(c)
		c.ExpectNoError(err, "list pods")
		for i := range pods {
			if name := fmt.Sprintf("pod-%d", i); placed[name] == "" {
				c.ExpectNoRoom(name, 1)
			}
		}
		if n := driver.Volumes()[0]; len(placed) != 5 || n != 5 {
			t.Errorf("%d pods have a node, with %d volumes, want 5", len(placed), n)
		}
		c.ExpectNoFailures(driver)
	})
}

// TestReservedCapacity: a pod says that it waits for capacity to be refreshed, and
// goes on when it is. With the policy Object, it waits for any decision. With
// InFlight, it does only if the volumes in flight may be where it has to go.
func TestReservedCapacity(t *testing.T) { clustertest.ForEachPolicyInTurn(t, testReservedCapacity) }

func testReservedCapacity(t *testing.T, options clustertest.Options) {
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(2)
	driver := c.StartDriver(unpublished([]int64{100, 100}, []int64{10}))

	c.CreatePod(clustertest.Pod{Name: "first", Class: class, Sizes: []string{"60Gi"}})
	c.ExpectNode("first", "node-1")
	woken := c.Woken(capacityEvents)
	c.CreatePod(clustertest.Pod{Name: "small", Class: class, Sizes: []string{"20Gi"}})
	if c.IsObject() {
		c.ExpectReason("small", 1, clustertest.Reserved)
	} else {
		c.ExpectNode("small", "node-1")
	}
	c.CreatePod(clustertest.Pod{Name: "waits", Class: class, Sizes: []string{"60Gi"}})
	c.ExpectReason("waits", 1, clustertest.Reserved)
	c.CreatePod(clustertest.Pod{Name: "never", Class: class, Sizes: []string{"200Gi"}})
	c.ExpectNoRoom("never", 2)

	driver.Publish()
	if c.IsObject() {
		// One of them goes on, and the other one has to wait again.
		c.WaitForPlaced(2)
		driver.Publish()
	}
	c.WaitForPlaced(3)
	// None, if the pods were about to be tried again anyway.
	if got := c.Woken(capacityEvents) - woken; got > 3 {
		c.Errorf("%d pods were woken, want only those that waited for the object, once for each report", got)
	}
	c.ExpectNoFailures(driver)
}

// TestProfilesShareReservations: two pods compete for an object. It does not help
// that a profile of its own schedules each of them.
func TestProfilesShareReservations(t *testing.T) {
	clustertest.ForAnyPolicy(t, testProfilesShareReservations)
}

func testProfilesShareReservations(t *testing.T, options clustertest.Options) {
	const second = "second-scheduler"
	options.Configure = func(scheduler *config.KubeSchedulerConfiguration) {
		profile := scheduler.Profiles[0].DeepCopy()
		profile.SchedulerName = second
		scheduler.Profiles = append(scheduler.Profiles, *profile)
	}
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(1)
	driver := c.StartDriver(unpublished([]int64{100}))

	rival := map[string]string{corev1.DefaultSchedulerName: second, second: corev1.DefaultSchedulerName}
	for scheduler := range rival {
		c.CreatePod(clustertest.Pod{Name: scheduler, Class: class, Sizes: []string{"60Gi"}, With: func(pod *st.PodWrapper) {
			pod.SchedulerName(scheduler)
		}})
	}
	c.WaitForPlaced(1)
	placed, err := c.Placed(c)
	c.ExpectNoError(err, "list pods")
	for scheduler := range placed {
		c.ExpectReason(rival[scheduler], 1, clustertest.Reserved)
	}

	driver.Publish()
	for scheduler := range placed {
		c.ExpectNoRoom(rival[scheduler], 1)
	}
	c.ExpectNoFailures(driver)
}
