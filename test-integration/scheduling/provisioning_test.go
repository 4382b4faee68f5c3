// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

const inFlight = config.InFlightCapacityReservation

// claimGate keeps volumes from being created.
type claimGate struct {
	mutex  sync.Mutex
	closed sets.Set[string]
}

func newGate() *claimGate { return &claimGate{closed: sets.New[string]()} }

func (g *claimGate) close(claims ...string) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.closed.Insert(claims...)
}

func (g *claimGate) open(claims ...string) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.closed.Delete(claims...)
}

// beforeCreate is for modeldriver.Config.
func (g *claimGate) beforeCreate(_ context.Context, claim string) error {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.closed.Has(claim) {
		return errors.New("the storage is busy")
	}
	return nil
}

// TestVolumeNeverComes: a provisioner gets an error for a claim, tries again and
// again, and leaves it the selected node. The policy Object waits for the volume no
// longer than the timeout, InFlight keeps its bytes only.
func TestVolumeNeverComes(t *testing.T) { clustertest.ForEachPolicy(t, testVolumeNeverComes) }

func testVolumeNeverComes(t *testing.T, options clustertest.Options) {
	options.ReservationTimeout = 600 // longer than anybody waits here
	if options.Policy == config.ObjectCapacityReservation {
		options.ReservationTimeout = 4
	}
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(1)
	gate := newGate()
	gate.close("stuck-0")
	config := local([]int64{1000})
	config.BeforeCreate = gate.beforeCreate
	driver := c.StartDriver(config)
	begin := time.Now()
	c.CreatePod(clustertest.Pod{Name: "stuck", Class: class, Sizes: []string{"500Gi"}})
	c.ExpectSelected("stuck-0", "node-1")

	c.CreatePod(clustertest.Pod{Name: "other", Class: class, Sizes: []string{"60Gi"}})
	if c.IsObject() {
		c.ExpectNodeAfter(begin, "other", "node-1")
	} else {
		c.ExpectNode("other", "node-1")
		c.CreatePod(clustertest.Pod{Name: "large", Class: class, Sizes: []string{"450Gi"}})
		c.ExpectReason("large", 1, clustertest.Reserved)
	}
	gate.open("stuck-0")
	c.ExpectNode("stuck", "node-1")
	c.ExpectNoFailures(driver)
}

// TestRecreatedPod: a pod is deleted and created again, with the same claim, before
// there is a volume. The claim counts once.
func TestRecreatedPod(t *testing.T) { clustertest.ForEachPolicy(t, testRecreatedPod) }

func testRecreatedPod(t *testing.T, options clustertest.Options) {
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(1)
	gate := newGate()
	gate.close("data")
	config := unpublished([]int64{130})
	config.BeforeCreate = gate.beforeCreate
	driver := c.StartDriver(config)
	c.CreateClaim("data", class, "60Gi")
	app := clustertest.Pod{Name: "app", Claims: []string{"data"}}
	c.CreatePod(app)
	c.ExpectSelected("data", "node-1")
	for range 2 {
		c.DeletePod(app)
		c.CreatePod(app)
		// The scheduler says so when it waits for volumes.
		expectNominated(c, "app", "node-1")
	}
	c.CreatePod(clustertest.Pod{Name: "other", Class: class, Sizes: []string{"60Gi"}})
	if c.IsObject() {
		c.ExpectReason("other", 1, clustertest.Reserved)
	} else {
		c.ExpectNode("other", "node-1")
	}
	gate.open("data")
	c.ExpectNode("app", "node-1")
	if c.IsObject() {
		driver.Publish()
		c.ExpectNode("other", "node-1")
	}
	c.CreatePod(clustertest.Pod{Name: "full", Class: class, Sizes: []string{"60Gi"}})
	c.ExpectReason("full", 1, clustertest.Reserved)
	driver.Publish()
	c.ExpectNoRoom("full", 1)
	c.ExpectNoFailures(driver)
}

// TestAttempts: pods that fill nodes with late reports are not tried much more often
// than with the feature gate off, where nobody waits, and pods get nodes that are full already.
func TestAttempts(t *testing.T) {
	const nodes, perNode, pods = 6, 10, 60
	var withoutGate float64
	run := func(t *testing.T, options clustertest.Options) {
		c := clustertest.StartWith(ktesting.Init(t), options)
		c.CreateNodes(nodes)
		config := local(slices.Repeat([][]int64{{100}}, nodes)...)
		config.RefreshDelay = 500 * time.Millisecond
		driver := c.StartDriver(config)
		before := c.Attempts()
		for i := range pods {
			c.CreatePod(clustertest.Pod{Name: fmt.Sprintf("pod-%d", i), Class: class, Sizes: []string{"10Gi"}})
		}
		// In steps, because each has the time limit on a busy machine.
		for n := range perNode {
			c.WaitForPlaced((n + 1) * nodes)
		}
		got := float64(c.Attempts()-before) / pods
		t.Logf("%.2f attempts per pod, %d volumes without room", got, driver.Failed())
		if options.GateOff {
			withoutGate = got
			expectFailures(c, driver)
			return
		}
		more := 1.5
		if c.IsObject() {
			more = perNode / 2 // Each version of an object is for one pod, and all that it has refused try.
		}
		if got > withoutGate+more {
			t.Errorf("%.2f attempts per pod, want at most %.1f more than the %.2f with the gate off", got, more, withoutGate)
		}
		c.ExpectNoFailures(driver)
	}
	t.Run("gate-off", func(t *testing.T) { run(t, clustertest.Options{GateOff: true}) })
	clustertest.ForAnyPolicyInTurn(t, run)
}
