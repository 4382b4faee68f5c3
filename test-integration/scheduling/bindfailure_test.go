package scheduling

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
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// stumbling is the name of a plugin, and the label of the pod whose first binding
// it lets fail.
const stumbling = "Stumbling"

// stumblingPlugin holds up the first binding of a pod with the label until the
// test lets it fail.
type stumblingPlugin struct {
	reached atomic.Bool
	fail    chan struct{}
}

var _ fwk.PreBindPlugin = &stumblingPlugin{}

func (p *stumblingPlugin) Name() string { return stumbling }

// PreBindPreFlight does not allow it to run in parallel with other plugins.
func (p *stumblingPlugin) PreBindPreFlight(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	if _, ok := pod.Labels[stumbling]; !ok {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return nil, nil
}

func (p *stumblingPlugin) PreBind(ctx context.Context, _ fwk.CycleState, _ *corev1.Pod, _ string) *fwk.Status {
	if p.reached.Swap(true) {
		return nil
	}
	select {
	case <-p.fail:
	case <-ctx.Done():
	}
	return fwk.AsStatus(errors.New("stumbled"))
}

// startStumbling starts a control plane whose scheduler runs the plugin before or
// after all others.
func startStumbling(t *testing.T, before bool) (*clustertest.Cluster, *stumblingPlugin) {
	t.Helper()
	plugin := &stumblingPlugin{fail: make(chan struct{})}
	c := clustertest.StartWith(ktesting.Init(t), clustertest.Options{
		Plugins: frameworkruntime.Registry{stumbling: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return plugin, nil }},
		Configure: func(scheduler *config.KubeSchedulerConfiguration) {
			enabled := &scheduler.Profiles[0].Plugins.MultiPoint.Enabled
			at := len(*enabled)
			if before {
				at = 0
			}
			*enabled = slices.Insert(*enabled, at, config.Plugin{Name: stumbling})
		},
	})
	return c, plugin
}

// stumble creates a pod with a volume and returns when its binding is about to
// fail. Another pod waits for the capacity.
func stumble(c *clustertest.Cluster, plugin *stumblingPlugin, size string) {
	c.Helper()
	c.CreatePod(clustertest.Pod{Name: "stumbles", Class: class, Sizes: []string{size}, With: func(pod *st.PodWrapper) {
		pod.Label(stumbling, "once")
	}})
	c.Eventually(func(context.Context) error {
		if !plugin.reached.Load() {
			return errors.New("the binding of the pod has not begun")
		}
		return nil
	})
	c.CreatePod(clustertest.Pod{Name: "waits", Class: class, Sizes: []string{size}})
	c.ExpectReason("waits", 1, clustertest.Reserved)
}

// TestFailedBindingEndsReservation: a pod that fails to bind before a volume was
// asked for gives the capacity back, and the pod that waits for it goes on without
// a refresh.
func TestFailedBindingEndsReservation(t *testing.T) {
	c, plugin := startStumbling(t, true)
	c.CreateNodes(1)
	driver := c.StartDriver(unpublished([]int64{100}))
	stumble(c, plugin, "60Gi")

	close(plugin.fail)
	c.ExpectNode("waits", "node-1")
	c.ExpectReason("stumbles", 1, clustertest.Reserved)
	driver.Publish()
	c.ExpectNoRoom("stumbles", 1)
	expectNoFailures(c, driver)
}
