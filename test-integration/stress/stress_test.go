// SPDX-License-Identifier: Apache-2.0

package stress

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

var (
	podsFlag = flag.Int("stress.pods", 180, "number of pods for each policy")
	seedFlag = flag.Int64("stress.seed", 0, "seed of all faults; 0 takes one from the clock")
)

func TestMain(m *testing.M) { clustertest.Main(m) }

const (
	// single is the class of pods with one volume: a driver with several pools for
	// each node may put it in any of them. joint is that of pods with several
	// volumes: with one pool, the order in which a driver creates them makes no
	// difference for what fits.
	single, joint = "single", "joint"
	nodes         = 6

	// expiry is the timeout of reservations, backoff the longest backoff of a pod,
	// and slack is for a busy machine: a pod that may go on may wait in a queue.
	expiry  = 10 * time.Second
	backoff = 2 * time.Second
	slack   = time.Minute

	refreshDelay = 200 * time.Millisecond
	pollInterval = 2 * time.Second

	// mostWaiting and mostPlaced are the numbers of pods up to which more are
	// created, and from which on the oldest are deleted. They make room scarce.
	mostWaiting = 60
	mostPlaced  = 30
)

// TestStress has three subtests for each policy, each with a third of the pods:
// drivers that do not confirm their reports, drivers that do, and with these, faults
// of the scheduler and the API server.
func TestStress(t *testing.T) {
	s := seed(*seedFlag)
	if s == 0 {
		s = seed(time.Now().UnixNano())
	}
	t.Logf("seed %d; again with: -stress.seed=%d -stress.pods=%d", s, s, *podsFlag)
	pods := *podsFlag / 3
	for _, confirming := range []bool{false, true} {
		t.Run(fmt.Sprintf("confirming=%t", confirming), func(t *testing.T) {
			clustertest.ForAnyPolicy(t, func(t *testing.T, options clustertest.Options) {
				r := start(t, s, options, confirming)
				r.run(pods, nil)
				bound := 0
				switch {
				case confirming:
				case options.Policy == config.ObjectCapacityReservation:
					// A report for one volume may end the wait for another one.
					bound = r.provisioned() / 8
				default:
					// A decrease may be due to another volume than the one to which it
					// is credited, and that one may be in another pool.
					bound = r.provisioned() / 1000
				}
				r.finish(bound)
			})
		})
	}
	t.Run("restarts", func(t *testing.T) {
		clustertest.ForAnyPolicy(t, func(t *testing.T, options clustertest.Options) {
			options.Lease = true
			r := start(t, s, options, true)
			r.run(pods, []fault{relist, kill, takeOver, serverAway, kill})
			// One request of each scheduler that was cut off may arrive late.
			r.finish(4)
		})
	})
}

// start starts a control plane whose bindings fail now and then, with drivers whose
// reports do.
func start(t *testing.T, s seed, options clustertest.Options, confirming bool) *run {
	t.Helper()
	r := &run{
		seed: s, waiting: map[string]time.Time{}, pinnedSince: map[string]time.Time{},
		roomSince: map[fit]time.Time{}, certainSince: map[fit]time.Time{},
		guessing: options.Policy == config.InFlightCapacityReservation && !confirming,
	}
	options.ReservationTimeout = int64(expiry.Seconds())
	r.Cluster = clustertest.StartWith(ktesting.Init(t), r.failBindings(options))
	r.CreateNodes(nodes)
	r.drivers = map[string]*modeldriver.Driver{}
	for class, pools := range map[string][]int64{single: {100, 100, 100}, joint: {300}} {
		driver := modeldriver.Config{
			Name: class + ".example.com", Classes: []string{class}, Confirming: confirming,
			RefreshDelay: refreshDelay, PollInterval: pollInterval, Faults: r.faultsOf(class),
		}
		for i := range nodes {
			driver.Segments = append(driver.Segments, modeldriver.Segment{Labels: clustertest.OnNode(nodeName(i)), Pools: modeldriver.GiB(pools...)})
		}
		r.drivers[class] = r.StartDriver(driver)
	}
	return r
}

// finish checks what is left of all that.
func (r *run) finish(bound int) {
	r.Helper()
	r.probe()
	failed := 0
	for _, driver := range r.drivers {
		failed += driver.Failed()
	}
	r.Logf("%d volumes, %d without room, at most %d are allowed; %d pods torn; longest wait beside room: %v, where the scheduler can know: %v", r.provisioned(), failed, bound, r.torn,
		r.longest.Round(100*time.Millisecond), r.certain.Round(100*time.Millisecond))
	if failed > bound {
		r.Errorf("%d volumes were asked for where there was no room, want %d at most", failed, bound)
	}
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i+1) }
