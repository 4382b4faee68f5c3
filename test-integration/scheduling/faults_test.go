package scheduling

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// TestFaultyRefreshes is Story 2 with drivers half of whose refreshes go wrong. No
// pod gets stuck. There may be volumes for which there is no room where a refresh
// does not tell about the decision before it: any refresh ends the reservation, as
// the KEP has it.
func TestFaultyRefreshes(t *testing.T) {
	const seed = 5925
	faults := []struct {
		name string
		modeldriver.Fault
		mayFail bool
	}{
		// The object stays reserved until something is published, because the
		// driver polls before the reservation expires.
		{name: "dropped", Fault: modeldriver.Dropped},
		// The second write may come when the next decision has used the object.
		{name: "doubled", Fault: modeldriver.Doubled, mayFail: true},
		// The old number has room that was given away.
		{name: "outdated", Fault: modeldriver.Outdated, mayFail: true},
	}
	c := clustertest.Start(ktesting.Init(t))
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
			Faults: func() modeldriver.Fault {
				if random.IntN(2) == 0 {
					return fault.Fault
				}
				return modeldriver.NoFault
			},
		})
	}
	t.Logf("seed %d", seed)

	const pods = 10
	for i := range pods {
		for _, fault := range faults {
			c.CreatePod(clustertest.Pod{Name: fmt.Sprintf("%s-%d", fault.name, i), Class: fault.name, Sizes: []string{"20Gi"}})
		}
	}
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
			expectNoFailures(c, drivers[i])
		}
	}
}
