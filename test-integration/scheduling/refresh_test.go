// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

const pauseName = "Pause"

// pause is a plugin of the scheduler that stops it once, after it has looked at what
// is the same for all nodes, and before it looks at one.
type pause struct {
	pod           string
	once          sync.Once
	reached, goOn chan struct{}
}

var _ fwk.FilterPlugin = &pause{}

func (p *pause) Name() string { return pauseName }

func (p *pause) Filter(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, _ fwk.NodeInfo) *fwk.Status {
	if pod.Name == p.pod {
		p.once.Do(func() {
			close(p.reached)
			select {
			case <-p.goOn:
			case <-ctx.Done():
			}
		})
	}
	return nil
}

// addTo returns the options of a control plane whose scheduler runs the plugin first.
func (p *pause) addTo(options clustertest.Options) clustertest.Options {
	options.Plugins = frameworkruntime.Registry{pauseName: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return p, nil }}
	options.Configure = func(scheduler *config.KubeSchedulerConfiguration) {
		enabled := &scheduler.Profiles[0].Plugins.MultiPoint.Enabled
		*enabled = slices.Insert(*enabled, 0, config.Plugin{Name: pauseName})
	}
	return options
}

// TestRefreshDuringDecision: an object is refreshed while the scheduler is about to
// decide. It must not put together the old number and the new knowledge that nothing
// is in flight. An object with expressions is found once for all nodes, long before
// that.
func TestRefreshDuringDecision(t *testing.T) {
	for name, expressions := range map[string]bool{"labels": false, "expressions": true} {
		t.Run(name, func(t *testing.T) {
			clustertest.ForAnyPolicy(t, func(t *testing.T, options clustertest.Options) {
				testRefreshDuringDecision(t, options, expressions)
			})
		})
	}
}

func testRefreshDuringDecision(t *testing.T, options clustertest.Options, expressions bool) {
	p := &pause{pod: "second", reached: make(chan struct{}), goOn: make(chan struct{})}
	c := clustertest.StartWith(ktesting.Init(t), p.addTo(options))
	c.CreateNodes(1)
	config := unpublished([]int64{100})
	config.Expressions = expressions
	driver := c.StartDriver(config)
	c.CreatePod(clustertest.Pod{Name: "first", Class: class, Sizes: []string{"60Gi"}})
	c.ExpectNode("first", "node-1")
	c.CreatePod(clustertest.Pod{Name: "second", Class: class, Sizes: []string{"60Gi"}})
	select {
	case <-p.reached:
	case <-c.Done():
		t.Fatal("the scheduler has not tried the second pod")
	}
	driver.Publish()
	c.WaitForCapacity(40 << 30)
	close(p.goOn)
	c.ExpectNoRoom("second", 1)
	c.ExpectNoFailures(driver)
}
