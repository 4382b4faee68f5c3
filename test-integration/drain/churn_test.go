package drain

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

const (
	// churnPods is how many pods there are at any time: nearly as many as fit.
	churnPods = nodes*podsPerNode - 4
	// churnTime is for how long a pod is deleted and another one created at each
	// churnInterval.
	churnTime, churnInterval = 30 * time.Second, 250 * time.Millisecond
	// patience is for how long the last pods are waited for: the timeout of a
	// reservation, and a while.
	patience = 2 * time.Minute
	// selectedNode is where the scheduler tells the provisioner its decision.
	selectedNode = "volume.kubernetes.io/selected-node"
)

// BenchmarkChurn deletes and creates pods where nearly all room is taken. Reports are
// a second late, and a PersistentVolume comes half a second after its volume. With
// kills, the scheduler is killed twice.
func BenchmarkChurn(b *testing.B) {
	for _, kills := range []bool{false, true} {
		config := modeldriver.Config{Segments: layouts[0].segments(1), RefreshDelay: time.Second, VolumeDelay: 500 * time.Millisecond}
		compare(b, fmt.Sprintf("kills=%t", kills), config, func(b *testing.B, options clustertest.Options, config modeldriver.Config) {
			c := churn{Cluster: clustertest.StartWith(ktesting.Init(b), options), waiting: map[string]bool{}, roomSince: map[fit]time.Time{}}
			c.CreateNodes(nodes)
			c.driver = c.StartDriver(config)
			c.run(kills)
			b.ReportMetric(c.longest.Seconds(), "wait-s")
			b.ReportMetric(float64(len(c.waiting)), "pods-left")
			b.ReportMetric(float64(c.driver.Failed()), "failed-provisions")
		})
	}
}

// churn is a control plane in which pods come and go.
type churn struct {
	*clustertest.Cluster
	driver  *modeldriver.Driver
	created int
	// waiting are the pods without a node, placed those with one, the oldest first.
	waiting map[string]bool
	placed  []string
	// roomSince is since when there is room for a pod that waits, and longest the
	// longest time of that.
	roomSince map[fit]time.Time
	longest   time.Duration
}

// fit is a pod and a node with room for it.
type fit struct {
	pod  string
	node int
}

func podOf(name string) clustertest.Pod {
	return clustertest.Pod{Name: name, Class: class, Sizes: []string{fmt.Sprintf("%dGi", podSize)}}
}

func (c *churn) create() {
	name := fmt.Sprintf("pod-%d", c.created)
	c.created++
	c.CreatePod(podOf(name))
	c.waiting[name] = true
}

func (c *churn) run(kills bool) {
	for range churnPods {
		c.create()
	}
	for len(c.waiting) > 0 {
		c.observe()
	}
	c.longest = 0 // until now, nothing was full
	start, killed := time.Now(), 0
	for time.Since(start) < churnTime {
		if len(c.placed) > 0 {
			c.DeletePod(podOf(c.placed[0]))
			c.placed = c.placed[1:]
			c.create()
		}
		if kills && killed < 2 && time.Since(start) > time.Duration(killed+1)*churnTime/3 {
			c.KillScheduler()
			c.StartScheduler()
			clear(c.roomSince) // nobody could decide
			killed++
		}
		for next := time.Now().Add(churnInterval); time.Now().Before(next); {
			c.observe()
		}
	}
	for end := time.Now().Add(patience); len(c.waiting) > 0 && time.Now().Before(end); {
		c.observe()
	}
}

// observe looks which pods have got a node, and which wait beside free room.
func (c *churn) observe() {
	time.Sleep(50 * time.Millisecond)
	pods, err := c.Client().CoreV1().Pods(c.Namespace).List(c, metav1.ListOptions{})
	c.ExpectNoError(err, "list pods")
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.NodeName != "" && c.waiting[pod.Name] {
			delete(c.waiting, pod.Name)
			c.placed = append(c.placed, pod.Name)
		}
	}
	claims, err := c.Client().CoreV1().PersistentVolumeClaims(c.Namespace).List(c, metav1.ListOptions{})
	c.ExpectNoError(err, "list claims")
	sent, inFlight := map[string]bool{}, map[string]int64{}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if node := claim.Annotations[selectedNode]; node != "" {
			sent[claim.Name] = true
			if claim.Spec.VolumeName == "" {
				inFlight[node] += podSize << 30
			}
		}
	}
	now := time.Now()
	before := c.roomSince
	c.roomSince = map[fit]time.Time{}
	for node := range nodes {
		name := fmt.Sprintf("node-%d", node+1)
		if c.driver.Free(name)[0]-inFlight[name] < podSize<<30 {
			continue
		}
		for pod := range c.waiting {
			if sent[pod+"-0"] {
				continue
			}
			key := fit{pod: pod, node: node}
			since, had := before[key]
			if !had {
				since = now
			}
			c.roomSince[key] = since
			c.longest = max(c.longest, now.Sub(since))
		}
	}
}
