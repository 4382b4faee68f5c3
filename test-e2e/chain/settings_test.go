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
	// Kill is what gets killed when a third of the pods have a node: "scheduler",
	// "provisioner" or "driver". In Churn, each is killed in its turn.
	Kill []string
}

// settings are all scenarios. Where there is room for exactly the pods that there are,
// each node takes 20 of 60.
var settings = []setting{
	{Name: "plenty", Pods: 60, Pools: []int{2000}},
	{Name: "tight", Pods: 60, Pools: []int{200}},
	{Name: "sizes and pools that differ", Pods: 28, Pools: []int{50, 37, 23}, Sizes: []int{13, 3, 11, 7}},
	{Name: "tight, a volume takes 1 s", Pods: 60, Pools: []int{200}, CreateDelay: time.Second},
	{Name: "tight, scheduler killed", Pods: 60, Pools: []int{200}, Kill: []string{"scheduler"}},
	{Name: "tight, provisioners and drivers killed", Pods: 60, Pools: []int{200}, Kill: []string{"provisioner", "driver"}},
	{Name: "pods come and go", Pods: 60, Pools: []int{100}, Churn: 2 * time.Minute, Kept: 29},
	{Name: "pods come and go, each part killed", Pods: 60, Pools: []int{100}, Churn: 2 * time.Minute, Kept: 29, Kill: []string{"scheduler", "provisioner", "driver"}},
	{Name: "drain", Pods: 20, Pools: []int{200}, Drain: true},
	{Name: "drain, room for half at first", Pods: 20, Pools: []int{200}, Drain: true, Fillers: 30},
	{Name: "drain, scheduler killed", Pods: 20, Pools: []int{200}, Drain: true, Kill: []string{"scheduler"}},
	{Name: "drain, provisioners and drivers killed", Pods: 20, Pools: []int{200}, Drain: true, Kill: []string{"provisioner", "driver"}},
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

// driver is what the row needs on the nodes. A container that was killed waits longer each time, so
// that where some are killed, all are new.
func (r row) driver() measure.Driver {
	fresh := slices.ContainsFunc(r.Kill, func(part string) bool { return part != "scheduler" })
	return measure.Driver{Pools: r.Pools, CreateDelay: r.CreateDelay, Provisioner: r.provisioner, Fresh: fresh}
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
	case len(s.Kill) == 0 && s.Churn == 0 && !s.Drain:
		return []variant{off, object, stock, patched}
	case len(s.Kill) == 0:
		return []variant{off, object, patched}
	case slices.Equal(s.Kill, []string{"scheduler"}):
		return []variant{object, stock, patched}
	}
	return []variant{object, patched}
}
