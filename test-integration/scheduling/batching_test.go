// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// withoutDefaultSpreading lets the scheduler batch pods. It does not if they get
// topology constraints by default.
func withoutDefaultSpreading(scheduler *config.KubeSchedulerConfiguration) {
	for _, plugin := range scheduler.Profiles[0].PluginConfig {
		if args, ok := plugin.Args.(*config.PodTopologySpreadArgs); ok {
			args.DefaultingType = config.ListDefaulting
		}
	}
}

// gate keeps pods from being scheduled.
const gate = "example.com/claims"

// openGates lets pods get scheduled in a row, with all their claims created.
func openGates(c *clustertest.Cluster, pods []string) {
	c.Helper()
	c.Eventually(func(ctx context.Context) error {
		claims, err := c.Client().CoreV1().PersistentVolumeClaims(c.Namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(claims.Items) != len(pods) {
			err = fmt.Errorf("%d claims, want %d", len(claims.Items), len(pods))
		}
		return err
	})
	for _, pod := range pods {
		_, err := c.Client().CoreV1().Pods(c.Namespace).Patch(c, pod, types.MergePatchType, []byte(`{"spec": {"schedulingGates": null}}`), metav1.PatchOptions{})
		c.ExpectNoError(err, "open the gate of a pod")
	}
}

// TestBatchedPodsOfZones: for pods that are alike, the scheduler goes on in the list of nodes that it found for the
// first one. A decision for one node of the list takes room from the next ones, whose scores are those from before it.
func TestBatchedPodsOfZones(t *testing.T) {
	withAndWithout(t, func(t *testing.T, options clustertest.Options) {
		const pods, room = 10, 8
		options.Configure = withoutDefaultSpreading
		c := clustertest.StartWith(ktesting.Init(t), options)
		createZones(c)
		config := zones([]int64{80}, []int64{80})
		config.RefreshDelay = time.Second
		driver := c.StartDriver(config)
		batched := c.Batched()

		names := make([]string, pods)
		for i := range names {
			names[i] = fmt.Sprintf("pod-%d", i)
			c.CreatePod(clustertest.Pod{Name: names[i], Class: class, Sizes: []string{"20Gi"}, Ephemeral: true, With: func(pod *st.PodWrapper) {
				pod.SchedulingGates([]string{gate})
			}})
		}
		openGates(c, names)
		if options.GateOff {
			expectFailures(c, driver)
			return
		}
		c.WaitForPlaced(room)
		c.Stays(func(ctx context.Context) error {
			placed, err := c.Placed(ctx)
			if err == nil && len(placed) > room {
				err = fmt.Errorf("%d pods have a node, want %d", len(placed), room)
			}
			return err
		})
		if n := c.Batched() - batched; n == 0 {
			t.Error("no pod was batched, want some")
		}
		if n := driver.Volumes(); !slices.Equal(n, []int{4, 4}) {
			t.Errorf("volumes of the zones: %v, want 4 each", n)
		}
		c.ExpectNoFailures(driver)
	})
}
