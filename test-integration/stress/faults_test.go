// SPDX-License-Identifier: Apache-2.0

package stress

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// seed makes random decisions that depend on what they are about, but not on the
// order in which they are made.
type seed int64

// of returns a source for one thing.
func (s seed) of(format string, args ...any) *rand.Rand {
	hash := fnv.New64a()
	fmt.Fprintf(hash, format, args...)
	return rand.New(rand.NewPCG(uint64(s), hash.Sum64()))
}

// happens decides with a probability in percent.
func (s seed) happens(percent int, format string, args ...any) bool {
	return s.of(format, args...).IntN(100) < percent
}

// fault is what happens to the scheduler or the API server.
type fault struct {
	name string
	do   func(*run)
}

var (
	relist = fault{"the scheduler lists again", func(r *run) { r.Relist() }}
	kill   = fault{"the scheduler is killed", func(r *run) {
		r.KillScheduler()
		r.StartScheduler()
	}}
	takeOver = fault{"another scheduler takes over", func(r *run) {
		r.StartStandby()
		r.TakeOver()
	}}
	// The scheduler loses its lease and ends, as kube-scheduler does, and is started
	// again.
	serverAway = fault{"the API server is away for 20 seconds", func(r *run) {
		r.CutServer()
		time.Sleep(20 * time.Second)
		r.MendServer()
		r.KillScheduler()
		r.StartScheduler()
	}}
)

// faultsOf returns what goes wrong with the reports of a driver.
func (r *run) faultsOf(class string) func() modeldriver.Fault {
	random := r.seed.of("faults of %s", class)
	return func() modeldriver.Fault {
		switch n := random.IntN(100); {
		case n < 5:
			return modeldriver.Dropped
		case n < 15:
			return modeldriver.Doubled
		case n < 17:
			return modeldriver.Recreated
		default:
			return modeldriver.NoFault
		}
	}
}

const failingName = "FailsOnce"

// failing is a plugin of the scheduler that lets the binding of some pods fail once,
// after their volumes were bound.
type failing struct {
	seed   seed
	failed sync.Map
}

var _ fwk.PreBindPlugin = &failing{}

func (f *failing) Name() string { return failingName }

func (f *failing) PreBindPreFlight(context.Context, fwk.CycleState, *corev1.Pod, string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	return nil, nil
}

func (f *failing) PreBind(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	if !f.seed.happens(3, "binding of %s fails", pod.Name) {
		return nil
	}
	if _, again := f.failed.LoadOrStore(pod.UID, true); again {
		return nil
	}
	return fwk.NewStatus(fwk.Error, "binding fails, as the seed says")
}

// failBindings returns the options of a control plane whose scheduler runs the plugin
// after all others.
func (r *run) failBindings(options clustertest.Options) clustertest.Options {
	plugin := &failing{seed: r.seed}
	options.Plugins = frameworkruntime.Registry{failingName: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return plugin, nil }}
	options.Configure = func(c *config.KubeSchedulerConfiguration) {
		c.PodMaxBackoffSeconds = int64(backoff.Seconds())
		enabled := &c.Profiles[0].Plugins.MultiPoint.Enabled
		*enabled = append(*enabled, config.Plugin{Name: failingName})
	}
	return options
}
