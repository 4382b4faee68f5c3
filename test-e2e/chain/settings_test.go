package chain

import (
	"fmt"
	"slices"
	"time"
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
	// Kill is what gets killed when a third of the pods have a node: "scheduler",
	// "provisioner" or "driver".
	Kill string
}

// settings are all scenarios. Where there is room for exactly the pods that there are,
// each node takes 20 of 60.
var settings = []setting{
	{Name: "plenty", Pods: 60, Pools: []int{2000}},
	{Name: "tight", Pods: 60, Pools: []int{200}},
	{Name: "tight, eight pools a node", Pods: 60, Pools: []int{30, 30, 30, 30, 20, 20, 20, 20}},
	{Name: "tight, a volume takes 1 s", Pods: 60, Pools: []int{200}, CreateDelay: time.Second},
	{Name: "tight, polled each second", Pods: 60, Pools: []int{200}, Poll: time.Second},
	{Name: "tight, scheduler killed", Pods: 60, Pools: []int{200}, Kill: "scheduler"},
	{Name: "tight, provisioners killed", Pods: 60, Pools: []int{200}, Kill: "provisioner"},
	{Name: "tight, drivers killed", Pods: 60, Pools: []int{200}, Kill: "driver"},
	{Name: "pods come and go", Pods: 100, Pools: []int{100}, Churn: 5 * time.Minute, Kept: 27},
}

// places is how many volumes fit on a node.
func (s setting) places() int {
	places := 0
	for _, pool := range s.Pools {
		places += pool / volumeSize
	}
	return places
}

// gib is what is free on an empty node, in GiB.
func (s setting) gib() int {
	total := 0
	for _, pool := range s.Pools {
		total += pool
	}
	return total
}

// poolFlags are those of the driver.
func (s setting) poolFlags() []string {
	var flags []string
	for i, pool := range s.Pools {
		flags = append(flags, fmt.Sprintf("--pools=p%d=%s/p%d:%dGi", i, dataFolder, i, pool))
	}
	return flags
}

// provisionerImages are the images of the provisioners that are compared.
var provisionerImages = map[string]string{
	"stock":   provisionerImage + ":stock",
	"patched": provisionerImage + ":dev",
}

// variant is a scheduler beside a provisioner.
type variant struct {
	scheduler   scheduler
	provisioner string
}

// variants are those with which the setting is measured. What takes minutes, and what
// kills, leaves out the provisioner that does not matter.
func (s setting) variants() []variant {
	all := []variant{
		{scheduler{""}, "stock"}, {scheduler{""}, "patched"},
		{scheduler{"Object"}, "stock"}, {scheduler{"Object"}, "patched"},
		{scheduler{"InFlight"}, "stock"}, {scheduler{"InFlight"}, "patched"},
	}
	if s.Churn > 0 || s.Kill != "" {
		all = slices.DeleteFunc(all, func(v variant) bool {
			return v == variant{scheduler{""}, "patched"} || v == variant{scheduler{"Object"}, "stock"}
		})
	}
	return all
}
