package stress

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/apiservertest"
	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

var (
	podsFlag = flag.Int("stress.pods", 200, "number of pods for each policy")
	seedFlag = flag.Int64("stress.seed", 0, "seed of all faults; 0 takes one from the clock")
)

func TestMain(m *testing.M) { apiservertest.Main(m) }

const (
	// single is the class of pods with one volume: a driver with several pools for
	// each node may put it in any of them. joint is that of pods with several
	// volumes: with one pool, the order in which a driver creates them makes no
	// difference for what fits.
	single, joint = "single", "joint"
	nodes         = 40

	// expiry is the timeout of reservations, backoff the longest backoff of a pod,
	// and slack is for a busy machine: a pod that is not idle may wait in a queue.
	expiry  = 10 * time.Second
	backoff = 2 * time.Second
	slack   = 20 * time.Second

	refreshDelay = 200 * time.Millisecond
	pollInterval = 2 * time.Second

	// mostWaiting and mostPlaced are the numbers of pods up to which more are
	// created, and from which on the oldest are deleted. They make room scarce.
	mostWaiting = 120
	mostPlaced  = 400
	// restarts is how often the scheduler is restarted.
	restarts = 4
)

func TestStress(t *testing.T) {
	s := seed(*seedFlag)
	if s == 0 {
		s = seed(time.Now().UnixNano())
	}
	t.Logf("seed %d; again with: make test-stress SEED=%d PODS=%d", s, s, *podsFlag)
	for _, policy := range []config.CapacityReservationPolicy{config.ObjectCapacityReservation, config.InFlightCapacityReservation} {
		t.Run(string(policy), func(t *testing.T) {
			r := start(t, s, policy)
			r.run(*podsFlag)
			r.probe()
			decisions, err := r.oracle.result()
			t.Logf("%d decisions, %d volumes, %d without room, of which %d after a restart; %d pods torn", decisions, r.provisioned(), r.failed, r.failedAfterRestart, r.torn)
			if err != nil {
				t.Error(err)
			}
			if failed := r.failed - r.failedAfterRestart; policy == config.InFlightCapacityReservation && failed > 0 {
				t.Errorf("%d volumes were asked for where there was no room", failed)
			}
			if decisions < *podsFlag/2 {
				t.Errorf("the oracle has seen %d decisions for %d pods", decisions, *podsFlag)
			}
		})
	}
}

// start starts a control plane whose scheduler has the oracle.
func start(t *testing.T, s seed, policy config.CapacityReservationPolicy) *run {
	t.Helper()
	r := &run{seed: s, oracle: newOracle(policy, expiry), waiting: map[string]time.Time{}, ended: map[string]bool{}, roomSince: map[fit]time.Time{}, pinnedSince: map[string]time.Time{}}
	args := &config.VolumeBindingArgs{
		BindTimeoutSeconds:  600,
		CapacityReservation: &config.CapacityReservation{Policy: policy, TimeoutSeconds: int64(expiry.Seconds())},
	}
	r.Cluster = clustertest.StartWith(ktesting.Init(t), clustertest.Options{
		Plugins: r.oracle.registry(args, r.bindingFails()),
		Configure: func(c *config.KubeSchedulerConfiguration) {
			c.PodMaxBackoffSeconds = int64(backoff.Seconds())
			plugins := c.Profiles[0].Plugins
			for i, enabled := range plugins.MultiPoint.Enabled {
				if enabled.Name == names.VolumeBinding {
					plugins.MultiPoint.Enabled[i].Name = oracleName
				}
			}
		},
	})
	r.CreateNodes(nodes)
	for class, pools := range map[string][]int64{single: {100, 100, 100}, joint: {300}} {
		driver := modeldriver.Config{
			Name: class + ".example.com", Classes: []string{class},
			RefreshDelay: refreshDelay, PollInterval: pollInterval, Faults: faults(s, class, policy),
		}
		for i := range nodes {
			driver.Segments = append(driver.Segments, modeldriver.Segment{Labels: clustertest.OnNode(nodeName(i)), Pools: modeldriver.GiB(pools...)})
		}
		r.drivers = append(r.drivers, r.StartDriver(driver))
	}
	return r
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i+1) }

// objectName returns the name of the capacity object of a class on a node.
func objectName(class, node string) string {
	for i := range nodes {
		if nodeName(i) == node {
			return fmt.Sprintf("%s-%d", class, i)
		}
	}
	return ""
}

// faults returns what goes wrong with reports. Outdated numbers are not for the
// policy InFlight: nothing tells them from space that was given back.
func faults(s seed, class string, policy config.CapacityReservationPolicy) func() modeldriver.Fault {
	random := s.of("faults of %s", class)
	return func() modeldriver.Fault { return fault(random, policy) }
}

func fault(random *rand.Rand, policy config.CapacityReservationPolicy) modeldriver.Fault {
	switch n := random.IntN(100); {
	case n < 5:
		return modeldriver.Dropped
	case n < 15:
		return modeldriver.Doubled
	case n < 20 && policy == config.ObjectCapacityReservation:
		return modeldriver.Outdated
	default:
		return modeldriver.NoFault
	}
}

// bindingFails returns whether binding fails after the volumes of a pod were bound:
// for some pods, the first time.
func (r *run) bindingFails() func(*corev1.Pod) bool {
	var failed sync.Map
	return func(pod *corev1.Pod) bool {
		if !r.seed.happens(3, "binding of %s fails", pod.Name) {
			return false
		}
		_, again := failed.LoadOrStore(pod.UID, true)
		return !again
	}
}
