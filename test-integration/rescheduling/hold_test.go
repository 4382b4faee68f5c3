package rescheduling

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"capacityv2.internal/test-integration/clustertest"
)

// hold is the name of a plugin.
const hold = "Hold"

// holdPlugin holds up binding a pod to a node once, and lets it fail then if there is
// an error.
type holdPlugin struct {
	node    string
	reached atomic.Bool
	goOn    chan struct{}
	fail    error
}

var _ fwk.PreBindPlugin = &holdPlugin{}

func (p *holdPlugin) Name() string { return hold }

// PreBindPreFlight does not allow it to run in parallel with other plugins.
func (p *holdPlugin) PreBindPreFlight(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, node string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	if node != p.node {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return nil, nil
}

func (p *holdPlugin) PreBind(ctx context.Context, _ fwk.CycleState, _ *corev1.Pod, _ string) *fwk.Status {
	if p.reached.Swap(true) {
		return nil
	}
	select {
	case <-p.goOn:
		return fwk.AsStatus(p.fail)
	case <-ctx.Done():
		return fwk.AsStatus(ctx.Err())
	}
}

// startHolding starts a control plane whose scheduler stops before it binds a pod to
// the node: before all other plugins, or after them.
func startHolding(t *testing.T, node string, before bool) (*clustertest.Cluster, *holdPlugin) {
	t.Helper()
	plugin := &holdPlugin{node: node, goOn: make(chan struct{})}
	c := start(t, clustertest.Options{
		Plugins: frameworkruntime.Registry{hold: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return plugin, nil }},
		Configure: func(scheduler *config.KubeSchedulerConfiguration) {
			enabled := &scheduler.Profiles[0].Plugins.MultiPoint.Enabled
			at := len(*enabled)
			if before {
				at = 0
			}
			*enabled = slices.Insert(*enabled, at, config.Plugin{Name: hold})
		},
	})
	return c, plugin
}

// wait returns when the plugin holds up a pod.
func (p *holdPlugin) wait(c *clustertest.Cluster) {
	c.Helper()
	c.Eventually(func(context.Context) error {
		if !p.reached.Load() {
			return errors.New("no pod is about to be bound")
		}
		return nil
	})
}
