// SPDX-License-Identifier: Apache-2.0

package drivershapes

import (
	"flag"
	"fmt"
	"slices"
	"time"

	"capacityv2.internal/test-integration/clustertest"
)

// nodesEach is the number of nodes that each load has to itself.
const nodesEach = 2

// load is what pods ask for, of the class or classes of a driver whose nodes have 100Gi each.
type load struct {
	name string
	pods int
	// first is how many come first, if not all. When they run, the others come.
	first int
	// alive is how many of the pods that run are left, if not zero: older ones are deleted, and
	// new ones are created while few wait.
	alive int
	// sizes are those of the volumes of a pod.
	sizes []string
}

// loads are what each driver is asked for, all at once.
var loads = []load{
	{name: "plenty", pods: 8, sizes: []string{"10Gi"}},
	{name: "tight", pods: 12, first: 4, sizes: []string{"20Gi"}},
	{name: "pairs", pods: 8, sizes: []string{"20Gi", "20Gi"}},
	{name: "burst", pods: 26, sizes: []string{"10Gi"}},
	{name: "churn", pods: 12, alive: 3, sizes: []string{"20Gi"}},
}

var longFlag = flag.Bool("shapes.long", false, "ten times as many pods that come and go")

// lengthen makes loads long.
func lengthen() {
	for i := range loads {
		if *longFlag && loads[i].alive > 0 {
			loads[i].pods *= 10
		}
	}
}

// loads are those of a shape.
func (s *shape) loads() []load {
	return slices.DeleteFunc(slices.Clone(loads), func(l load) bool { return slices.Contains(s.without, l.name) })
}

// mostWaiting is how many pods wait in a load whose pods come and go before the next one is created.
const mostWaiting = 5

// isDue tells whether the next pod comes, after so many others, of which some have run.
func (l load) isDue(created, ran int) bool {
	switch {
	case created == l.pods:
		return false
	case l.alive > 0:
		return created-ran < mostWaiting
	case l.first > 0 && created >= l.first:
		return ran >= l.first
	}
	return true
}

// timeout is that of reservations.
const timeout = 90 * time.Second

// later is how much later the last pod may have its node, where the guide says that pods wait.
func (l load) later(s *shape) time.Duration {
	switch {
	case l.alive == 0:
		return s.later
	case len(s.worse) > 0:
		return timeout
	}
	return s.later * time.Duration(l.pods/mostWaiting) // one after the other
}

// create creates a pod with claims of classes in turn.
func (l load) create(c *clustertest.Cluster, i int, classes []string) {
	c.Helper()
	name := l.pod(i)
	pod := clustertest.Pod{Name: name, Claims: l.claims(i), NodeSelector: map[string]string{loadLabel: l.label(c)}}
	for j, claim := range pod.Claims {
		c.CreateClaim(claim, classes[(i+j)%len(classes)], l.sizes[j])
	}
	c.CreatePod(pod)
}

func (l load) delete(c *clustertest.Cluster, i int) {
	c.Helper()
	c.DeletePod(clustertest.Pod{Name: l.pod(i)})
	for _, claim := range l.claims(i) {
		c.DeleteClaim(claim)
	}
}

func (l load) label(c *clustertest.Cluster) string { return c.Namespace + "-" + l.name }

func (l load) pod(i int) string { return fmt.Sprintf("%s-%d", l.name, i) }

func (l load) claims(i int) (names []string) {
	for j := range l.sizes {
		names = append(names, fmt.Sprintf("%s-%d", l.pod(i), j))
	}
	return names
}
