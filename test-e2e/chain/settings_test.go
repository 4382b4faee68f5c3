package chain

import (
	"cmp"
	"slices"
	"time"

	"capacityv2.internal/test-e2e/measure"
)

// volumeSize is that of every volume, in GiB.
const volumeSize = 10

// setting is what the driver, the provisioner and the users do in a scenario.
type setting struct {
	Name string
	// Pods are created at once, or one after another in Churn.
	Pods int
	// Pools are those of each node, in GiB.
	Pools []int
	// CreateDelay is how much longer a volume takes.
	CreateDelay time.Duration
	// Poll is that of the provisioner. Zero is its default, a minute.
	Poll time.Duration
	// Churn is the time in which Pods pods are created and others deleted, so that
	// Kept of them are there all the time.
	Churn time.Duration
	Kept  int
	// Drain is that the pods are on one node, which is drained. Fillers are pods that
	// take room on the other nodes until all are refused for whom none is left.
	Drain   bool
	Fillers int
	// Kill is what gets killed when a third of the pods have a node: "scheduler",
	// "provisioner" or "driver". In Churn, each is killed in its turn.
	Kill []string
}

// settings are all scenarios. Where there is room for exactly the pods that there are,
// each node takes 20 of 60.
var settings = []setting{
	{Name: "plenty", Pods: 60, Pools: []int{2000}},
	{Name: "tight", Pods: 60, Pools: []int{200}},
	{Name: "tight, eight pools a node", Pods: 60, Pools: []int{30, 30, 30, 30, 20, 20, 20, 20}},
	{Name: "tight, a volume takes 1 s", Pods: 60, Pools: []int{200}, CreateDelay: time.Second},
	{Name: "tight, polled each second", Pods: 60, Pools: []int{200}, Poll: time.Second},
	{Name: "tight, scheduler killed", Pods: 60, Pools: []int{200}, Kill: []string{"scheduler"}},
	{Name: "tight, provisioners killed", Pods: 60, Pools: []int{200}, Kill: []string{"provisioner"}},
	{Name: "tight, drivers killed", Pods: 60, Pools: []int{200}, Kill: []string{"driver"}},
	{Name: "pods come and go", Pods: 100, Pools: []int{100}, Churn: 5 * time.Minute, Kept: 27},
	{Name: "pods come and go, each part killed", Pods: 100, Pools: []int{100}, Churn: 5 * time.Minute, Kept: 27, Kill: []string{"scheduler", "provisioner", "driver"}},
	{Name: "drain", Pods: 20, Pools: []int{200}, Drain: true},
	{Name: "drain, room for half at first", Pods: 20, Pools: []int{200}, Drain: true, Fillers: 30},
	{Name: "drain, scheduler killed", Pods: 20, Pools: []int{200}, Drain: true, Kill: []string{"scheduler"}},
	{Name: "drain, provisioners killed", Pods: 20, Pools: []int{200}, Drain: true, Kill: []string{"provisioner"}},
	{Name: "drain, drivers killed", Pods: 20, Pools: []int{200}, Drain: true, Kill: []string{"driver"}},
}

// places is how many volumes fit on a node.
func (s setting) places() int {
	places := 0
	for _, pool := range s.Pools {
		places += pool / volumeSize
	}
	return places
}

// variant is a scheduler beside a provisioner.
type variant struct {
	// policy is that of the scheduler's reservation. With "" the feature gate is off.
	policy      string
	provisioner measure.Provisioner
}

func (v variant) scheduler() string { return cmp.Or(v.policy, "gate off") }

// variants are those with which the setting is measured. What takes minutes, and what
// kills, leaves out the provisioner that does not matter.
func (s setting) variants() []variant {
	all := []variant{
		{"", measure.Stock}, {"", measure.Patched}, {"Object", measure.Stock}, {"Object", measure.Patched}, {"InFlight", measure.Stock}, {"InFlight", measure.Patched},
	}
	kills, long := len(s.Kill) > 0, s.Churn > 0 || s.Drain
	return slices.DeleteFunc(all, func(v variant) bool {
		switch v {
		case variant{"", measure.Stock}:
			return kills && long
		case variant{"", measure.Patched}, variant{"Object", measure.Stock}:
			return kills || long
		}
		return false
	})
}
