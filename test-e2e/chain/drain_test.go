package chain

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"capacityv2.internal/test-e2e/measure"
)

// stuck is how long it takes to see that pods do not run, or are refused.
const stuck = 40 * time.Second

// drain puts the pods of a StatefulSet on one node, drains that, and waits until all
// of them run elsewhere, with their data.
func (c *cluster) drain(t *testing.T, s setting, v variant, places map[string]int) measure.Result {
	t.Helper()
	home, others := c.nodes[0], c.nodes[1:]
	t.Cleanup(func() { kubectl(t, append([]string{"uncordon"}, c.nodes...)...) })
	kubectl(t, append([]string{"cordon"}, others...)...)
	must(t, c.CreateDatabase(t.Context(), s.Pods, volumeSize))
	waitFor(t, patience, func() bool { return c.timeline.Running() == s.Pods && len(c.Tokens(t.Context(), s.Pods)) == s.Pods })
	before := c.Tokens(t.Context(), s.Pods)
	kubectl(t, append([]string{"uncordon"}, others...)...)
	for i := range s.Fillers {
		must(t, c.CreatePod(t.Context(), fmt.Sprintf("filler-%d", i), others[i%len(others)], volumeSize))
	}
	waitFor(t, patience, func() bool { return c.timeline.Running() == s.Pods+s.Fillers })

	c.timeline.Restart()
	delete(places, home)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		kubectl(t, "drain", home, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=90s")
	}()
	if s.Fillers > 0 {
		tooMany := s.Pods + s.Fillers - len(others)*s.places()
		waitFor(t, stuck, func() bool { return c.refused(t, len(others)) == tooMany })
		c.deleteFillers(t)
	}
	limit := patience
	if v.policy == "" {
		limit = stuck
	}
	waitFor(t, limit, func() bool { return c.timeline.Running() == s.Pods })
	<-drained
	r := c.timeline.Result(places, time.Now())
	r.Left = s.Pods - c.timeline.Running()
	for pod, token := range c.Tokens(t.Context(), s.Pods) {
		if token != before[pod] {
			r.Lost++
		}
	}
	return r
}

// refused is how many pods have no node because so many nodes have no room.
func (c *cluster) refused(t *testing.T, nodes int) int {
	t.Helper()
	pods, err := c.Pods(t.Context())
	must(t, err)
	n := 0
	for reason, count := range measure.Unschedulable(pods) {
		if strings.Contains(reason, fmt.Sprintf("%d node(s) did not have enough free storage", nodes)) {
			n += count
		}
	}
	return n
}

func (c *cluster) deleteFillers(t *testing.T) {
	t.Helper()
	pods, err := c.Pods(t.Context())
	must(t, err)
	for _, pod := range slices.DeleteFunc(pods, func(p corev1.Pod) bool { return !strings.HasPrefix(p.Name, "filler-") }) {
		must(t, c.DeletePod(t.Context(), &pod))
	}
}
