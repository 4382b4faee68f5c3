package chain

import (
	"cmp"
	"slices"
	"time"

	"capacityv2.internal/test-e2e/measure"
)

// volumeSize is that of a volume, in GiB, where all are of one size.
const volumeSize = 10

// setting is what the driver, the provisioner and the users do in a scenario.
type setting struct {
	Name string
	// Pods are created at once, or one after another in Churn.
	Pods int
	// Pools are those of each node, in GiB.
	Pools []int
	// Sizes are those of the volumes, in turn, in GiB. Empty means volumeSize.
	Sizes []int
	// CreateDelay is how much longer a volume takes.
	CreateDelay time.Duration
	// Churn is the time in which Pods pods are created and others deleted, so that
	// Kept of them are there all the time.
	Churn time.Duration
	Kept  int
	// Drain is that the pods are on one node, which is drained. Fillers are pods that
	// take room on the other nodes until all are refused for whom none is left.
	Drain   bool
	Fillers int
	// KillScheduler is that it is killed when a third of the pods have a node. What comes of other parts that are
	// killed is not measured, but tested (make nightly ONLY=faults).
	KillScheduler bool
}

// settings are all scenarios. Where there is room for exactly the pods that there are,
// each node takes a third of them. In tight, they are so many that a scheduler that does not reserve fails now and then.
var settings = []setting{
	{Name: "plenty", Pods: 30, Pools: []int{1000}},
	{Name: "tight", Pods: 60, Pools: []int{200}},
	{Name: "sizes and pools that differ", Pods: 28, Pools: []int{50, 37, 23}, Sizes: []int{13, 3, 11, 7}},
	{Name: "tight, a volume takes 1 s", Pods: 30, Pools: []int{100}, CreateDelay: time.Second},
	{Name: "tight, scheduler killed", Pods: 30, Pools: []int{100}, KillScheduler: true},
	{Name: "pods come and go", Pods: 60, Pools: []int{100}, Churn: time.Minute, Kept: 29},
	{Name: "drain", Pods: 10, Pools: []int{100}, Drain: true},
	{Name: "drain, room for half at first", Pods: 10, Pools: []int{100}, Drain: true, Fillers: 15},
}

// places is how many volumes fit on a node.
func (s setting) places() int {
	places := 0
	for _, pool := range s.Pools {
		places += pool / volumeSize
	}
	return places
}

// size is that of the volume of a pod, in GiB.
func (s setting) size(pod int) int {
	if len(s.Sizes) == 0 {
		return volumeSize
	}
	return s.Sizes[pod%len(s.Sizes)]
}

// variant is a scheduler beside a provisioner.
type variant struct {
	// policy is that of the scheduler's reservation. With "" the feature gate is off.
	policy      string
	provisioner measure.Provisioner
}

func (v variant) scheduler() string { return cmp.Or(v.policy, "gate off") }

// row is a line of the table.
type row struct {
	setting
	variant
}

// driver is what the row needs on the nodes.
func (r row) driver() measure.Driver {
	return measure.Driver{Pools: r.Pools, CreateDelay: r.CreateDelay, Provisioner: r.provisioner}
}

// rows are all lines in the order in which they are measured: those with the same driver follow one
// another, since a new one costs as much time as a scenario.
func rows() []row {
	var groups [][]row
	for _, s := range settings {
		for _, v := range s.variants() {
			r := row{s, v}
			i := slices.IndexFunc(groups, func(g []row) bool {
				return slices.Equal(g[0].Pools, r.Pools) && g[0].CreateDelay == r.CreateDelay && g[0].provisioner == r.provisioner
			})
			if i < 0 {
				groups, i = append(groups, nil), len(groups)
			}
			groups[i] = append(groups[i], r)
		}
	}
	return slices.Concat(groups...)
}

// variants are those with which the setting is measured. Provisioners without
// confirmation matter where reports decide, and where a scheduler starts anew.
func (s setting) variants() []variant {
	off, object, stock, patched := variant{"", measure.Stock}, variant{"Object", measure.Patched}, variant{"InFlight", measure.Stock}, variant{"InFlight", measure.Patched}
	switch {
	case s.KillScheduler:
		return []variant{object, stock, patched}
	case s.Churn > 0 || s.Drain:
		return []variant{off, object, patched}
	}
	return []variant{off, object, stock, patched}
}
