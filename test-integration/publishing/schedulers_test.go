// SPDX-License-Identifier: Apache-2.0

package publishing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/component-base/metrics/testutil"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// names are those of the schedulers, one program each: every other pod has the first one.
var names = []string{"a", "b"}

// schedulers are the programs, and the URLs of their metrics.
type schedulers struct {
	*clustertest.Cluster
	driver *modeldriver.Driver
	urls   []string
}

// addedAffinity is for a profile that uses some nodes only.
const addedAffinity = `  pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: %s, operator: In, values: [%s]}]}]}}
`

// schedulerConfig returns the configuration of one of the schedulers, for all nodes or for every other one.
func schedulerConfig(kubeconfig string, scheduler, nodes int, halves bool) string {
	text := clustertest.SchedulerConfig(kubeconfig) + "profiles:\n- schedulerName: " + names[scheduler] + "\n"
	if !halves {
		return text
	}
	var own []string
	for i := scheduler; i < nodes; i += len(names) {
		own = append(own, fmt.Sprintf("node-%d", i+1))
	}
	return text + fmt.Sprintf(addedAffinity, clustertest.NodeLabel, strings.Join(own, ", "))
}

// startSchedulers starts a control plane with a driver, a provisioner, and the schedulers.
func startSchedulers(t *testing.T, nodes int, halves bool) *schedulers {
	t.Helper()
	c := clustertest.StartWith(ktesting.Init(t), clustertest.Options{NoScheduler: true})
	s := &schedulers{Cluster: c, driver: createDriver(c, nodes, places*volumeSize<<30, class)}
	startProvisioner(c, s.driver, variant{qps: 20}, c.RESTConfig())
	expectPools(c, nodes, places*volumeSize<<30)
	program := clustertest.Program(c.TContext.TContext, "COMPONENTS", "kube-scheduler")
	for i := range names {
		kubeconfig := clustertest.Kubeconfig(c.TContext.TContext, c.RESTConfig(), "")
		config := clustertest.WriteSchedulerConfig(c.TContext.TContext, schedulerConfig(kubeconfig, i, nodes, halves))
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

// fill creates so many pods, and waits until all have a node.
func (s *schedulers) fill(pods int) {
	s.Helper()
	for i := range pods {
		s.CreatePod(clustertest.Pod{
			Name: fmt.Sprintf("pod-%d", i), Class: class, Sizes: []string{size},
			With: func(pod *st.PodWrapper) { pod.SchedulerName(names[i%len(names)]) },
		})
	}
	s.Patience = limit
	s.WaitForPlaced(pods)
	s.Patience = clustertest.Patience
}

// sum returns that of a metric of volume binding over all schedulers. One that has not counted yet has 0.
func (s *schedulers) sum(metric string) (int, error) {
	total := 0.0
	for _, url := range s.urls {
		text, err := clustertest.Get(s, url)
		if err != nil {
			return 0, err
		}
		all := testutil.NewMetrics()
		if err := testutil.ParseMetrics(string(text), &all); err != nil {
			return 0, err
		}
		for _, sample := range all["scheduler_volume_binding_capacity_"+metric] {
			total += float64(sample.Value)
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
	for name, halves := range map[string]bool{"all nodes": false, "half of the nodes each": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testTwoSchedulers(t, halves)
		})
	}
}

func testTwoSchedulers(t *testing.T, halves bool) {
	const nodes, pods = 10, 10 * places
	s := startSchedulers(t, nodes, halves)
	s.fill(pods)
	reservations, err := s.sum("reservations_total")
	s.ExpectNoError(err, "metrics of the schedulers")
	if reservations < pods {
		t.Errorf("the schedulers have reserved room for %d volumes, want %d or more", reservations, pods)
	}
	s.Eventually(s.checkNothingReserved)
	expectPools(s.Cluster, nodes, 0)
	expectFull(t, s.driver)
	if halves {
		// Else what one has decided may not have come to the other one yet.
		s.ExpectNoFailures(s.driver)
	}
}
