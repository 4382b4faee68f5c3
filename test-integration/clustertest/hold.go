// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// holdName is the name of the plugin of [Hold].
const holdName = "Hold"

// Hold is a plugin of the scheduler that holds up one binding of a pod to a node.
type Hold struct {
	// Holds selects the pod and the node.
	Holds func(pod *corev1.Pod, node string) bool
	// GoOn ends the wait when it is closed. Binding fails then if there is an error.
	GoOn chan struct{}
	Fail error

	reached atomic.Bool
}

var _ fwk.PreBindPlugin = &Hold{}

// NewHold returns a plugin that has not held up anything yet.
func NewHold(holds func(pod *corev1.Pod, node string) bool) *Hold {
	return &Hold{Holds: holds, GoOn: make(chan struct{})}
}

// AddTo returns the options of a control plane whose scheduler runs the plugin, too,
// before all others, or after them.
func (h *Hold) AddTo(options Options, before bool) Options {
	options.Plugins = frameworkruntime.Registry{holdName: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return h, nil }}
	options.Configure = func(scheduler *config.KubeSchedulerConfiguration) {
		// A pod whose binding failed is tried again after those that are woken by that, also on a busy machine.
		scheduler.PodInitialBackoffSeconds = 5
		enabled := &scheduler.Profiles[0].Plugins.MultiPoint.Enabled
		at := len(*enabled)
		if before {
			at = 0
		}
		*enabled = slices.Insert(*enabled, at, config.Plugin{Name: holdName})
	}
	return options
}

// Wait returns when the plugin holds up a pod.
func (h *Hold) Wait(c *Cluster) {
	c.Helper()
	c.Eventually(func(context.Context) error {
		if !h.reached.Load() {
			return errors.New("no pod is about to be bound")
		}
		return nil
	})
}

// Name implements fwk.Plugin.
func (h *Hold) Name() string { return holdName }

// PreBindPreFlight implements fwk.PreBindPlugin. It does not allow the plugin to run
// in parallel with others.
func (h *Hold) PreBindPreFlight(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	if !h.Holds(pod, node) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return nil, nil
}

// PreBind implements fwk.PreBindPlugin.
func (h *Hold) PreBind(ctx context.Context, _ fwk.CycleState, _ *corev1.Pod, _ string) *fwk.Status {
	if h.reached.Swap(true) {
		return nil
	}
	select {
	case <-h.GoOn:
		return fwk.AsStatus(h.Fail)
	case <-ctx.Done():
		return fwk.AsStatus(ctx.Err())
	}
}
