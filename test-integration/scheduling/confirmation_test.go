// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// TestEightDisks: a node of eight disks takes eight pods that need most of a disk
// each. If the driver confirms, the policy InFlight knows that each volume in flight
// takes one disk, whichever, and asks for no report in between.
func TestEightDisks(t *testing.T) {
	for _, worstFit := range []bool{false, true} {
		t.Run(fmt.Sprintf("worst-fit=%t", worstFit), func(t *testing.T) {
			clustertest.ForEachPolicy(t, func(t *testing.T, options clustertest.Options) {
				c := clustertest.StartWith(ktesting.Init(t), options)
				c.CreateNodes(1)
				config := unpublished([]int64{100, 100, 100, 100, 100, 100, 100, 100})
				config.Confirming, config.WorstFit = true, worstFit
				driver := c.StartDriver(config)
				const pods = 8
				for i := range pods {
					name := fmt.Sprintf("pod-%d", i)
					c.CreatePod(clustertest.Pod{Name: name, Class: class, Sizes: []string{"60Gi"}})
					if c.IsObject() && i > 0 {
						c.ExpectReason(name, 1, clustertest.Reserved)
						driver.Publish()
					}
					c.ExpectNode(name, "node-1")
				}
				c.CreatePod(clustertest.Pod{Name: "one-more", Class: class, Sizes: []string{"60Gi"}})
				c.ExpectReason("one-more", 1, clustertest.Reserved)
				driver.Publish()
				c.ExpectNoRoom("one-more", 1)
				c.ExpectNoFailures(driver)
			})
		})
	}
}

// TestHiddenCreation: a volume is created and another one is deleted between two
// reports, so that the numbers stay as they were. If the driver confirms, they are
// known to be new. Otherwise they are believed when the reservation has expired, also
// if an older provisioner takes over meanwhile: it writes nothing, because the numbers
// stay, so the confirmation stays valid and does not reflect the new volume.
func TestHiddenCreation(t *testing.T) {
	for name, tc := range map[string]struct{ confirming, takenOver bool }{
		"confirming=false":  {},
		"confirming=true":   {confirming: true},
		"older-provisioner": {confirming: true, takenOver: true},
	} {
		t.Run(name, func(t *testing.T) {
			clustertest.ForAnyPolicy(t, func(t *testing.T, options clustertest.Options) {
				confirmed := tc.confirming && !tc.takenOver
				switch {
				case tc.takenOver:
					options.ReservationTimeout = 3 // Ten times that is waited for.
				case !confirmed:
					options.ReservationTimeout = 5
				}
				c := clustertest.StartWith(ktesting.Init(t), options)
				c.CreateNodes(1)
				config := unpublished([]int64{200})
				config.Confirming = tc.confirming
				driver := c.StartDriver(config)
				first := clustertest.Pod{Name: "first", Class: class, Sizes: []string{"60Gi"}}
				c.CreatePod(first)
				c.ExpectNode("first", "node-1")
				driver.Publish()
				c.WaitForCapacity(140 << 30)
				driver.Confirm(confirmed)

				begin := time.Now()
				c.CreatePod(clustertest.Pod{Name: "second", Class: class, Sizes: []string{"60Gi"}})
				c.ExpectNode("second", "node-1")
				c.DeletePod(first)
				c.Eventually(func(context.Context) error {
					if n := driver.Volumes()[0]; n != 1 {
						return fmt.Errorf("%d volumes, want 1", n)
					}
					return nil
				})
				c.CreatePod(clustertest.Pod{Name: "third", Class: class, Sizes: []string{"100Gi"}})
				if confirmed {
					c.ExpectReason("third", 1, clustertest.Reserved)
					driver.Publish()
					c.ExpectNode("third", "node-1")
				} else {
					driver.Publish()
					c.ExpectNodeAfter(begin, "third", "node-1")
				}
				c.ExpectNoFailures(driver)
			})
		})
	}
}

// TestOlderProvisionerTakesOver: a confirmation stays in the object although it is
// for other numbers. Then volumes are guessed from the numbers again, instead of
// being waited for.
func TestOlderProvisionerTakesOver(t *testing.T) {
	clustertest.ForAnyPolicy(t, testOlderProvisionerTakesOver)
}

func testOlderProvisionerTakesOver(t *testing.T, options clustertest.Options) {
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(1)
	config := unpublished([]int64{100})
	config.Confirming = true
	driver := c.StartDriver(config)
	c.CreatePod(clustertest.Pod{Name: "first", Class: class, Sizes: []string{"10Gi"}})
	c.ExpectNode("first", "node-1")
	driver.Publish()
	c.WaitForCapacity(90 << 30)

	driver.Confirm(false)
	c.CreatePod(clustertest.Pod{Name: "second", Class: class, Sizes: []string{"20Gi"}})
	c.ExpectNode("second", "node-1")
	driver.Publish()
	c.WaitForCapacity(70 << 30)
	c.CreatePod(clustertest.Pod{Name: "third", Class: class, Sizes: []string{"70Gi"}})
	c.ExpectNode("third", "node-1")
	c.CreatePod(clustertest.Pod{Name: "fourth", Class: class, Sizes: []string{"10Gi"}})
	c.ExpectReason("fourth", 1, clustertest.Reserved)
	c.ExpectNoFailures(driver)
}

// TestRoundedUp: volumes are larger than what their claims ask for. The difference
// in what was published must not be taken for other volumes that are still to come.
// With the policy Object, only one volume at a time is to come.
func TestRoundedUp(t *testing.T) {
	options := clustertest.Options{Policy: inFlight}
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(1)
	config := unpublished([]int64{100})
	config.RoundUp = 20 << 30
	gate := newGate()
	config.BeforeCreate = gate.beforeCreate
	driver := c.StartDriver(config)
	for i := range 4 {
		name := fmt.Sprintf("pod-%d", i)
		gate.close(name + "-0")
		c.CreatePod(clustertest.Pod{Name: name, Class: class, Sizes: []string{"10Gi"}})
		c.ExpectSelected(name+"-0", "node-1")
	}
	for i := range 2 {
		gate.open(fmt.Sprintf("pod-%d-0", i))
		c.ExpectNode(fmt.Sprintf("pod-%d", i), "node-1")
		driver.Publish()
		c.WaitForCapacity(int64(80-20*i) << 30)
	}
	// 60 GiB are free, of which two more volumes take 40. Their claims ask for 20.
	c.CreatePod(clustertest.Pod{Name: "late", Class: class, Sizes: []string{"50Gi"}})
	c.ExpectReason("late", 1, clustertest.Reserved)
	gate.open("pod-2-0", "pod-3-0")
	c.ExpectNode("pod-2", "node-1")
	c.ExpectNode("pod-3", "node-1")
	driver.Publish()
	c.ExpectNoRoom("late", 1)
	c.ExpectNoFailures(driver)
}

// TestWorstFit: pods of different sizes fill nodes of several pools, with a driver
// that puts each volume in the largest pool, where the scheduler would not have put
// it, and publishes late.
func TestWorstFit(t *testing.T) {
	for _, confirming := range []bool{false, true} {
		t.Run(fmt.Sprintf("confirming=%t", confirming), func(t *testing.T) {
			clustertest.ForAnyPolicy(t, func(t *testing.T, options clustertest.Options) {
				options.ReservationTimeout = 10
				c := clustertest.StartWith(ktesting.Init(t), options)
				const nodes = 3
				c.CreateNodes(nodes)
				config := local([]int64{100, 80, 60}, []int64{100, 80, 60}, []int64{100, 80, 60})
				config.WorstFit, config.Confirming = true, confirming
				config.RefreshDelay = 300 * time.Millisecond
				driver := c.StartDriver(config)
				sizes := []int{50, 20, 35, 60, 10, 45, 25, 70, 15, 30}
				var names []string
				for i := range 2 * len(sizes) {
					names = append(names, fmt.Sprintf("pod-%d", i))
					c.CreatePod(clustertest.Pod{Name: names[i], Class: class, Sizes: []string{fmt.Sprintf("%dGi", sizes[i%len(sizes)])}})
				}
				// Those that wait then fit nowhere.
				c.Eventually(func(ctx context.Context) error {
					placed, err := c.Placed(ctx)
					if err != nil {
						return err
					}
					for _, name := range names {
						if _, ok := placed[name]; !ok {
							err = errors.Join(err, c.HasReason(name, nodes, clustertest.NoRoom))
						}
					}
					return err
				})
				t.Logf("%d of %d pods were placed", driver.Provisioned(), len(names))
				c.ExpectNoFailures(driver)
			})
		})
	}
}
