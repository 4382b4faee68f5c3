// SPDX-License-Identifier: Apache-2.0

package publishing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// names are those of schedulers in pods: every other pod has the first one.
var names = []string{"a", "b"}

// layout is what programs of kube-scheduler decide: each for pods with some of the names, and for all nodes or for
// a part of them.
type layout struct {
	name   string
	shards [][]string
	byNode bool
}

var (
	two       = layout{"two", [][]string{names[:1], names[1:]}, false}
	twoByNode = layout{"two, each with half of the nodes", [][]string{names[:1], names[1:]}, true}
)

// schedulers are programs that decide for pods with the names, and the URLs of their metrics.
type schedulers struct {
	*clustertest.Cluster
	driver *modeldriver.Driver
	nodes  int
	urls   []string
}

// addedAffinity is for a profile that uses some nodes only.
const addedAffinity = `  pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: %s, operator: In, values: [%s]}]}]}}
`

// config returns the configuration of the scheduler for one of the shards.
func (l layout) config(kubeconfig string, shard, nodes int) string {
	text := clustertest.SchedulerConfig(kubeconfig) + "profiles:\n"
	var own []string
	for i := range nodes {
		if i%len(l.shards) == shard {
			own = append(own, fmt.Sprintf("node-%d", i+1))
		}
	}
	for _, name := range l.shards[shard] {
		text += "- schedulerName: " + name + "\n"
		if l.byNode {
			text += fmt.Sprintf(addedAffinity, clustertest.NodeLabel, strings.Join(own, ", "))
		}
	}
	return text
}

// startSchedulers starts a control plane with a driver, a provisioner, and the schedulers of a layout, with the feature
// gate if it is on.
func startSchedulers(tb testing.TB, nodes int, v variant, l layout) *schedulers {
	tb.Helper()
	c := clustertest.StartWith(ktesting.Init(tb), clustertest.Options{NoScheduler: true})
	s := &schedulers{Cluster: c, driver: createDriver(c, nodes, places*volumeSize<<30, class), nodes: nodes}
	startProvisioner(c, s.driver, v, c.RESTConfig())
	expectPools(c, nodes, places*volumeSize<<30)
	program := clustertest.Program(c.TContext.TContext, "COMPONENTS", "kube-scheduler")
	for shard := range l.shards {
		kubeconfig := clustertest.Kubeconfig(c.TContext.TContext, c.RESTConfig(), "")
		config := clustertest.WriteSchedulerConfig(c.TContext.TContext, l.config(kubeconfig, shard, nodes))
		_, address := clustertest.StartComponent(c.TContext.TContext, program, kubeconfig, "--config="+config,
			"--feature-gates=CSIStorageCapacityV2=true")
		c.Eventually(func(ctx context.Context) error {
			_, err := clustertest.Get(ctx, address+"/readyz")
			return err
		})
		s.urls = append(s.urls, address+"/metrics")
	}
	return s
}

// fill creates as many pods as there are places, and waits until all have one. It returns how long that took.
func (s *schedulers) fill() (placed int, took time.Duration) {
	s.Helper()
	began := time.Now()
	for i := range s.nodes * places {
		s.CreatePod(clustertest.Pod{
			Name: fmt.Sprintf("pod-%d", i), Class: class, Sizes: []string{size},
			With: func(pod *st.PodWrapper) { pod.SchedulerName(names[i%len(names)]) },
		})
	}
	err := wait.PollUntilContextTimeout(s, 100*time.Millisecond, limit, true, func(context.Context) (bool, error) {
		pods, err := s.Placed(s)
		placed = len(pods)
		return placed == s.nodes*places, err
	})
	if err != nil && !wait.Interrupted(err) {
		s.Fatalf("list pods: %v", err)
	}
	return placed, time.Since(began)
}

// sum returns that of a metric of volume binding over all schedulers. One that has not counted yet has 0.
func (s *schedulers) sum(metric string, labels ...string) (int, error) {
	total := 0.0
	for _, url := range s.urls {
		all, err := metricsOf(s, url)
		if err != nil {
			return 0, err
		}
		if value, err := all.sum("scheduler_volume_binding_capacity_"+metric, labels...); err == nil {
			total += value
		}
	}
	return int(total), nil
}

// checkNothingReserved returns an error if a scheduler has reserved something.
func (s *schedulers) checkNothingReserved(context.Context) error {
	reservations, err1 := s.sum("active_reservations")
	bytes, err2 := s.sum("in_flight_bytes")
	if err := errors.Join(err1, err2); err != nil || reservations == 0 && bytes == 0 {
		return err
	}
	return fmt.Errorf("%d volumes with %d bytes are reserved, want none", reservations, bytes)
}

// TestTwoSchedulers: two schedulers decide for pods by their names, on nodes with as many places as pods. Each pod
// gets one, whatever the schedulers do not know of each other, and nothing stays reserved. No volume is refused where
// each scheduler has nodes of its own.
func TestTwoSchedulers(t *testing.T) {
	for _, l := range []layout{two, twoByNode} {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			testTwoSchedulers(t, l)
		})
	}
}

func testTwoSchedulers(t *testing.T, l layout) {
	const nodes = 10
	s := startSchedulers(t, nodes, variant{qps: 20}, l)
	if placed, took := s.fill(); placed != nodes*places {
		t.Fatalf("%d pods have a node after %v, want %d", placed, took, nodes*places)
	}
	reservations, err := s.sum("reservations_total")
	s.ExpectNoError(err, "metrics of the schedulers")
	if reservations < nodes*places {
		t.Errorf("the schedulers have reserved room for %d volumes, want %d or more", reservations, nodes*places)
	}
	s.Eventually(s.checkNothingReserved)
	expectPools(s.Cluster, nodes, 0)
	expectFull(t, s.driver)
	if l.byNode {
		// Else what one has decided may not have come to the other one yet.
		expectNoRefusals(t, s.driver)
	}
}
