package drain

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// limit is the time after which a queue that is not empty is left.
const limit = 20 * time.Second

// BenchmarkDrain has 80 pods of 10 GiB, for 10 nodes. When room is tight, they fill
// all of them, otherwise they need a tenth. Tight room with a driver that is never
// late is what the others are compared with.
func BenchmarkDrain(b *testing.B) {
	for _, layout := range layouts {
		for _, room := range []struct {
			name   string
			times  int64
			delays []time.Duration
		}{
			{"plenty", 10, []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second}},
			{"tight", 1, []time.Duration{0, 100 * time.Millisecond, time.Second, 10 * time.Second}},
		} {
			for _, delay := range room.delays {
				name := fmt.Sprintf("storage=%s/capacity=changing/room=%s/delay=%v", layout.name, room.name, delay)
				compare(b, name, modeldriver.Config{Segments: layout.segments(room.times), RefreshDelay: delay}, drain)
			}
			name := fmt.Sprintf("storage=%s/capacity=constant/room=%s/delay=1s", layout.name, room.name)
			compare(b, name, modeldriver.Config{Segments: layout.segments(room.times), RefreshDelay: time.Second, Thin: true}, drain)
		}
	}
}

// drain reports on one queue.
func drain(b *testing.B, options clustertest.Options, driverConfig modeldriver.Config) {
	const pods = nodes * podsPerNode
	c := clustertest.StartWith(ktesting.Init(b), options)
	c.CreateNodes(nodes)
	driver := c.StartDriver(driverConfig)
	for i := range pods {
		c.CreateClaim(fmt.Sprintf("claim-%d", i), class, fmt.Sprintf("%dGi", podSize))
	}
	start := time.Now()
	for i := range pods {
		c.CreatePod(clustertest.Pod{Name: fmt.Sprintf("pod-%d", i), Claims: []string{fmt.Sprintf("claim-%d", i)}})
	}
	scheduled := 0
	err := wait.PollUntilContextTimeout(c, 20*time.Millisecond, limit, true, func(context.Context) (bool, error) {
		// Not with the context that is about to end: that would be an error.
		list, err := c.Client().CoreV1().Pods(c.Namespace).List(c, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		scheduled = 0
		for i := range list.Items {
			if list.Items[i].Spec.NodeName != "" {
				scheduled++
			}
		}
		return scheduled == pods, nil
	})
	took := time.Since(start)
	if err != nil && !wait.Interrupted(err) {
		c.Fatalf("list pods: %v", err)
	}
	b.ReportMetric(took.Seconds(), "drain-s")
	b.ReportMetric(float64(scheduled)/took.Seconds(), "pods/s")
	b.ReportMetric(float64(pods-scheduled), "pods-left")
	b.ReportMetric(float64(driver.Failed()), "failed-provisions")
}
