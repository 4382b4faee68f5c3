package drain

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/apiservertest"
	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

const (
	class = "local"
	nodes = 10
	// podsPerNode is how many pods fit on a node when room is tight.
	podsPerNode = 10
	podSize     = 10
	// limit is the time after which a queue that is not empty is left.
	limit = 20 * time.Second
)

func TestMain(m *testing.M) { apiservertest.Main(m) }

var policies = []struct {
	name    string
	options clustertest.Options
}{
	{name: "upstream", options: clustertest.Options{GateOff: true}},
	{name: "Object", options: clustertest.Options{Policy: config.ObjectCapacityReservation}},
	{name: "InFlight", options: clustertest.Options{Policy: config.InFlightCapacityReservation}},
}

// BenchmarkDrain has 100 pods of 10 GiB, for 10 nodes. When room is tight, they
// fill all of them, otherwise they need a tenth.
func BenchmarkDrain(b *testing.B) {
	for _, zone := range []bool{false, true} {
		objects := "node"
		if zone {
			objects = "zone"
		}
		for _, room := range []struct {
			name  string
			times int64
		}{{"plenty", 10}, {"tight", 1}} {
			for _, delay := range []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second} {
				name := fmt.Sprintf("objects=%s/capacity=changing/room=%s/delay=%v", objects, room.name, delay)
				compare(b, name, modeldriver.Config{Segments: segments(zone, room.times), RefreshDelay: delay})
			}
		}
		// Late or not does not matter.
		compare(b, fmt.Sprintf("objects=%s/capacity=constant/room=tight/delay=0s", objects), modeldriver.Config{Segments: segments(zone, 1), Thin: true})
	}
}

// segments returns the same storage with one object for each node, or with one for
// all of them.
func segments(zone bool, times int64) []modeldriver.Segment {
	size := times * podsPerNode * podSize
	if zone {
		return []modeldriver.Segment{{Labels: map[string]string{}, Pools: modeldriver.GiB(nodes * size)}}
	}
	var all []modeldriver.Segment
	for i := range nodes {
		all = append(all, modeldriver.Segment{Labels: clustertest.OnNode(fmt.Sprintf("node-%d", i+1)), Pools: modeldriver.GiB(size)})
	}
	return all
}

func compare(b *testing.B, name string, driver modeldriver.Config) {
	driver.Name, driver.Classes = "drain.example.com", []string{class}
	for _, policy := range policies {
		b.Run(name+"/policy="+policy.name, func(b *testing.B) {
			for range b.N {
				measure(b, policy.options, driver)
			}
		})
	}
}

// measure reports on one queue.
func measure(b *testing.B, options clustertest.Options, driverConfig modeldriver.Config) {
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
