// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// TestFaultyRefreshes is Story 2 with drivers half of whose refreshes go wrong. No
// pod gets stuck.
func TestFaultyRefreshes(t *testing.T) {
	for _, confirming := range []bool{false, true} {
		t.Run(fmt.Sprintf("confirming=%t", confirming), func(t *testing.T) {
			clustertest.ForEachPolicy(t, func(t *testing.T, options clustertest.Options) {
				testFaultyRefreshes(t, options, confirming)
			})
		})
	}
}

func testFaultyRefreshes(t *testing.T, options clustertest.Options, confirming bool) {
	object := options.Policy == config.ObjectCapacityReservation
	const seed = 5925
	faults := []struct {
		name string
		modeldriver.Fault
		mayFail bool
	}{
		// The object stays reserved until something is published, because the
		// driver polls before the reservation expires.
		{name: "dropped", Fault: modeldriver.Dropped},
		// The second write may come when the next decision has used the object. It
		// ends the reservation of the object, as the KEP has it, unless the driver
		// says which volumes it includes.
		{name: "doubled", Fault: modeldriver.Doubled, mayFail: object && !confirming},
		// The old number has room that was given away. No rule can know.
		{name: "outdated", Fault: modeldriver.Outdated, mayFail: true},
		// What is in flight to the old object is in flight to the new one.
		{name: "recreated", Fault: modeldriver.Recreated},
	}
	if !confirming {
		// Nobody says what a recreated object includes, and the driver only writes it
		// when its numbers change, so the timeout has to end the wait.
		options.ReservationTimeout = 10
	}
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(len(faults))
	drivers := make([]*modeldriver.Driver, len(faults))
	for i, fault := range faults {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		drivers[i] = c.StartDriver(modeldriver.Config{
			Name:         fault.name + ".example.com",
			Classes:      []string{fault.name},
			Segments:     []modeldriver.Segment{{Labels: clustertest.OnNode(fmt.Sprintf("node-%d", i+1)), Pools: modeldriver.GiB(100)}},
			RefreshDelay: 300 * time.Millisecond,
			PollInterval: time.Second,
			Confirming:   confirming,
			Faults: func() modeldriver.Fault {
				if random.IntN(2) == 0 {
					return fault.Fault
				}
				return modeldriver.NoFault
			},
		})
	}
	t.Logf("seed %d", seed)

	// All pods are there before the scheduler: it decides before anything is published,
	// however slowly the machine creates pods.
	const pods = 10
	c.WaitForScheduler()
	c.StopScheduler()
	for i := range pods {
		for _, fault := range faults {
			c.CreatePod(clustertest.Pod{Name: fmt.Sprintf("%s-%d", fault.name, i), Class: fault.name, Sizes: []string{"20Gi"}})
		}
	}
	c.StartScheduler()
	c.WaitForPlaced(5 * len(faults))
	placed, err := c.Placed(c)
	c.ExpectNoError(err, "list pods")
	for i, fault := range faults {
		for pod := range pods {
			if name := fmt.Sprintf("%s-%d", fault.name, pod); placed[name] == "" {
				c.ExpectNoRoom(name, len(faults))
			}
		}
		t.Logf("%s: %d volumes were asked for where there was no room", fault.name, drivers[i].Failed())
		if !fault.mayFail {
			c.ExpectNoFailures(drivers[i])
		}
	}
}
