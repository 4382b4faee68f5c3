// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"capacityv2.internal/test-e2e/measure"
)

const (
	// size is that of a volume, in MiB: there are ten places on each node.
	size = 10
	// databases are pods whose node is drained, kept is how many others there are. Together
	// they take nine tenths of what two nodes have.
	databases, kept = 4, 14
	// every is how often a pod is created, between is the number of pods between faults.
	every, between = 1500 * time.Millisecond, 8
	// mostWaiting is the number of pods that do not run up to which more are created.
	mostWaiting = 10
	// patience is how long all may take to run when the faults are over: the timeout of
	// reservations, and the longest backoff of a pod and of the kubelet's containers.
	patience = 3 * time.Minute
	// longestWait is how long a pod may wait beside room: that timeout, and a pause in
	// which nobody can decide.
	longestWait = 90*time.Second + 2*pause
)

// TestFaults kills and pauses each part, in an order that comes from a seed, and drains a node
// in the middle. No volume is asked for where there is no room, but for requests of a scheduler that
// has lost its lease and does not know yet; nobody waits longer than is said; the database keeps its
// data; in the end all run, and nothing is reserved.
func TestFaults(t *testing.T) {
	if os.Getenv("COMPONENTS") == "" {
		t.Skip("it replaces the scheduler of a cluster of its own: make e2e LONG=1")
	}
	seed, err := strconv.ParseUint(os.Getenv("FAULTS_SEED"), 10, 64)
	must(t, err)
	c := connect(t)
	faults := c.faults(t, seed)
	home := c.nodes[0]
	before := c.startDatabase(t, home)
	t.Cleanup(func() { _ = c.kubectl(context.WithoutCancel(t.Context()), "uncordon", home) })

	drained := make(chan error, 1)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for i, f := range faults {
		if i == len(faults)/2 {
			t.Log("drain " + home)
			go func() {
				drained <- c.kubectl(t.Context(), "drain", home, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=100s")
			}()
		}
		t.Log(f)
		injected := make(chan error, 1)
		go func() { injected <- f.inject() }()
		for n := range between {
			c.createPod(t, fmt.Sprintf("pod-%d", i*between+n))
			c.keep(t, kept)
			c.revive(t)
			<-tick.C
		}
		must(t, <-injected)
	}
	if err := <-drained; err != nil {
		t.Errorf("drain %s: %v", home, err)
	}
	all := waitFor(t, patience, func() bool { c.keep(t, kept); c.revive(t); return c.timeline.Left() == 0 })
	places := map[string]int{}
	for _, node := range c.others(home) {
		places[node] = 10
	}
	r := c.timeline.Result(places, time.Now())
	t.Logf("%d faults: %+v", len(faults), r)
	if !all {
		pods, _ := c.Pods(t.Context())
		t.Errorf("%d pods do not run %s after the last fault: %v", c.timeline.Left(), patience, measure.Unschedulable(pods))
	}
	late := c.lostLeases(t)
	if r.Failed > late {
		t.Errorf("%d volumes were asked for where there was no room, want %d at most: as often has a scheduler lost its lease", r.Failed, late)
	}
	if limit := longestWait.Seconds(); r.Wait > limit {
		t.Errorf("a pod has waited for %.0f s beside room, want %.0f at most", r.Wait, limit)
	}
	c.expectData(t, home, before)
	if panics := c.panics(t); len(panics) > 0 {
		t.Errorf("in the logs of the schedulers:\n%s", strings.Join(panics, "\n"))
	}
	var left []string
	if !waitFor(t, longestWait, func() bool { c.revive(t); left = c.reserved(t); return len(left) == 0 }) {
		t.Errorf("in the end is still reserved:\n%s", strings.Join(left, "\n"))
	}
}

// faults are a kill and a pause of each part, shuffled.
func (c *cluster) faults(t *testing.T, seed uint64) []fault {
	t.Helper()
	var all []fault
	for _, p := range c.parts(t) {
		all = append(all, fault{part: p, kills: true}, fault{part: p})
	}
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// startDatabase runs the pods of a StatefulSet on a node, and returns their data.
func (c *cluster) startDatabase(t *testing.T, home string) map[string]string {
	t.Helper()
	others := c.others(home)
	must(t, c.kubectl(t.Context(), append([]string{"cordon"}, others...)...))
	defer func() { must(t, c.kubectl(t.Context(), append([]string{"uncordon"}, others...)...)) }()
	must(t, c.CreateDatabase(t.Context(), databases, size))
	var tokens map[string]string
	if !waitFor(t, patience, func() bool { tokens = c.Tokens(t.Context(), databases); return len(tokens) == databases }) {
		t.Fatal("the database does not run")
	}
	return tokens
}

// expectData expects that the database runs elsewhere, with its data.
func (c *cluster) expectData(t *testing.T, home string, before map[string]string) {
	t.Helper()
	var after map[string]string
	waitFor(t, patience, func() bool { after = c.Tokens(t.Context(), databases); return len(after) == databases })
	for name, token := range before {
		if after[name] != token {
			t.Errorf("%s has %q now, and had %q", name, after[name], token)
		}
	}
	pods, err := c.Pods(t.Context())
	must(t, err)
	for _, pod := range pods {
		if pod.Spec.NodeName == home {
			t.Errorf("%s is on %s, which was drained", pod.Name, home)
		}
	}
}

// createPod creates a pod with a volume, unless too many wait.
func (c *cluster) createPod(t *testing.T, name string) {
	t.Helper()
	if c.timeline.Left() >= mostWaiting {
		return
	}
	must(t, c.patiently(t.Context(), func(ctx context.Context) error { return c.CreatePod(ctx, name, "", size) }))
}

// keep deletes the oldest pods that run, until so many are left or no other runs.
func (c *cluster) keep(t *testing.T, kept int) {
	t.Helper()
	here, err := c.Pods(t.Context())
	if err != nil {
		return // the API server is away; the next time
	}
	here = slices.DeleteFunc(here, func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil || strings.HasPrefix(p.Name, measure.Database+"-")
	})
	slices.SortFunc(here, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for n := len(here); n > kept; n-- {
		i := slices.IndexFunc(here, func(p corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
		if i < 0 {
			return
		}
		must(t, c.patiently(t.Context(), func(ctx context.Context) error { return c.DeletePod(ctx, &here[i]) }))
		here = slices.Delete(here, i, i+1)
	}
}
