package chain

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"capacityv2.internal/test-e2e/measure"
	"capacityv2.internal/test-integration/history"
)

// patience is how long pods may take to run after the last one was created. It is
// longer than the timeout of reservations.
const patience = 150 * time.Second

// TestChain measures each scenario with each variant, one after the other and as often as
// it is told to, and writes the report.
func TestChain(t *testing.T) {
	if os.Getenv("COMPONENTS") == "" {
		t.Skip("it replaces the scheduler of a cluster of its own: make bench SUITE=chain")
	}
	only, err := regexp.Compile(os.Getenv("CHAIN_ONLY"))
	must(t, err)
	runs, err := strconv.Atoi(os.Getenv("CHAIN_RUNS"))
	must(t, err)
	report := report{file: os.Getenv("CHAIN_REPORT"), results: map[string][]measure.Result{}}
	for i := range runs {
		for _, r := range rows() {
			if !only.MatchString(key(r.setting, r.variant)) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", key(r.setting, r.variant), i+1), func(t *testing.T) {
				o := run(t, r.setting, r.variant)
				t.Logf("%+v", o.Result)
				check(t, r.setting, r.variant, o.Result)
				history.Expect(t, "history", o.history, history.Rules{Refusals: refusals(r.setting, r.variant)})
				report.add(r.setting, r.variant, o.Result)
				report.write(t)
			})
		}
	}
}

// check fails for what must not happen, whatever the machine.
func check(t *testing.T, s setting, v variant, r measure.Result) {
	t.Helper()
	// Without the feature, nobody looks for room for a volume that has to be rebuilt.
	if r.Left > 0 && s.Churn == 0 && !(s.Drain && v.policy == "") {
		t.Errorf("%d pods did not run", r.Left)
	}
	if r.Lost > 0 {
		t.Errorf("%d pods lost their data", r.Lost)
	}
	if v.policy == "InFlight" && v.provisioner == measure.Patched && !s.KillScheduler && r.Failed > 0 {
		t.Errorf("%d volumes were asked for where there was no room, want none with confirmation", r.Failed)
	}
}

// outcome is what came of a scenario, and what the drivers were asked for in it.
type outcome struct {
	measure.Result
	history []history.Operation
}

// run runs one scenario from an empty cluster.
func run(t *testing.T, s setting, v variant) outcome {
	c := connect(t, s, v)
	places := map[string]int{}
	for _, node := range c.nodes {
		places[node] = s.places()
	}
	before, begin := c.calls(t), time.Now()
	var r measure.Result
	if s.Drain {
		r = c.drain(t, s, v, places)
	} else {
		if s.Churn > 0 {
			c.churn(t, s)
		} else {
			for i := range s.Pods {
				c.createPod(t, s, i)
			}
			if s.KillScheduler {
				waitFor(t, patience, func() bool { return c.timeline.Decided() >= s.Pods/3 })
				must(t, c.scheduler.Crash())
			}
		}
		waitFor(t, patience, func() bool { return c.timeline.Left() == 0 })
		r = c.timeline.Result(places, time.Now())
	}
	r.Calls = -1
	if volumes := c.timeline.Volumes(); volumes > 0 {
		r.Calls = float64(c.calls(t)-before) / float64(volumes)
	}
	operations, err := c.History(t.Context(), begin)
	must(t, err)
	// Where nothing is configured anew, the drivers are those of the scenario before.
	operations = slices.DeleteFunc(operations, func(o history.Operation) bool { return o.Result == history.Refused && o.Call.Before(begin) })
	return outcome{r, operations}
}

// calls is how often drivers were asked for their capacity.
func (c *cluster) calls(t *testing.T) int {
	t.Helper()
	n, err := c.CapacityCalls(t.Context())
	must(t, err)
	return n
}

func (c *cluster) createPod(t *testing.T, s setting, i int) {
	t.Helper()
	must(t, c.CreatePod(t.Context(), fmt.Sprintf("pod-%d", i), "", s.size(i)))
}

// churn creates pods at a steady rate, and deletes the oldest one that runs whenever
// there are more than Kept.
func (c *cluster) churn(t *testing.T, s setting) {
	t.Helper()
	tick := time.NewTicker(s.Churn / time.Duration(s.Pods))
	defer tick.Stop()
	for i := range s.Pods {
		c.createPod(t, s, i)
		here, err := c.Pods(t.Context())
		must(t, err)
		here = slices.DeleteFunc(here, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
		slices.SortFunc(here, func(a, b corev1.Pod) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
		})
		for n := len(here); n > s.Kept; n-- {
			if i := slices.IndexFunc(here, func(p corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }); i >= 0 {
				must(t, c.DeletePod(t.Context(), &here[i]))
				here = slices.Delete(here, i, i+1)
			}
		}
		<-tick.C
	}
}
