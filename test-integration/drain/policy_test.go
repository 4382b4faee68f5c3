package drain

import (
	"fmt"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/apis/config"

	"capacityv2.internal/test-integration/apiservertest"
	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

func TestMain(m *testing.M) { apiservertest.Main(m) }

const (
	class = "local"
	nodes = 10
	// podsPerNode is how many pods fit on a node when room is tight.
	podsPerNode = 8
	podSize     = 10
)

// policies are what is compared. With confirmed, the policy is InFlight, and the
// driver confirms its reports.
var policies = []struct {
	name      string
	confirmed bool
	options   clustertest.Options
}{
	{name: "upstream", options: clustertest.Options{GateOff: true}},
	{name: "Object", options: clustertest.Options{Policy: config.ObjectCapacityReservation}},
	{name: "InFlight", options: clustertest.Options{Policy: config.InFlightCapacityReservation}},
	{name: "confirmed", confirmed: true, options: clustertest.Options{Policy: config.InFlightCapacityReservation}},
}

// compare runs measure with each policy.
func compare(b *testing.B, name string, driver modeldriver.Config, measure func(*testing.B, clustertest.Options, modeldriver.Config)) {
	driver.Name, driver.Classes = "drain.example.com", []string{class}
	for _, policy := range policies {
		b.Run(name+"/policy="+policy.name, func(b *testing.B) {
			config := driver
			config.Confirming = policy.confirmed
			for range b.N {
				measure(b, policy.options, config)
			}
		})
	}
}

// layouts are ways in which the nodes have their storage: a pool each, a pool for each
// pod, or one pool for all of them.
var layouts = []struct {
	name string
	// segments returns the storage, with room for times as many pods as the nodes
	// have with tight room.
	segments func(times int64) []modeldriver.Segment
}{
	{"node", func(times int64) []modeldriver.Segment { return eachNode(times * podsPerNode * podSize) }},
	{"pools", func(times int64) []modeldriver.Segment {
		pools := make([]int64, podsPerNode)
		for i := range pools {
			pools[i] = times * podSize
		}
		return eachNode(pools...)
	}},
	{"zone", func(times int64) []modeldriver.Segment {
		return []modeldriver.Segment{{Labels: map[string]string{}, Pools: modeldriver.GiB(times * nodes * podsPerNode * podSize)}}
	}},
}

// eachNode returns storage of which each node has its own, in GiB.
func eachNode(pools ...int64) []modeldriver.Segment {
	var all []modeldriver.Segment
	for i := range nodes {
		all = append(all, modeldriver.Segment{Labels: clustertest.OnNode(fmt.Sprintf("node-%d", i+1)), Pools: modeldriver.GiB(pools...)})
	}
	return all
}
