// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"capacityv2.internal/test-e2e/measure"
)

const (
	// patience is how long a story may take, stays how long its end has to last.
	patience = 30 * time.Second
	stays    = 3 * time.Second
	interval = 250 * time.Millisecond
)

// result is what came of a story on one side.
type result struct {
	Story       int
	Side, Title string
	// Running of Wanted pods run, in the end. Done is that all did in time.
	Running, Wanted int
	Done            bool
	// Course is how the number of pods that run changed.
	Course []point
	// Failed is how many volumes were asked for where there was no room.
	Failed int
	// Seconds is the time until it was done, or that it was waited for.
	Seconds float64
	// Said is what the scheduler said of the pods without a node.
	Said string
}

// point is that so many pods run from a time on, in seconds since the story began.
type point struct {
	Seconds float64
	Running int
}

// runStory runs a story in a cluster with empty pools, and fills its row of the table.
func runStory(ctx context.Context, o options, s story, side string, p measure.Provisioner, t *table) (r result, err error) {
	r = result{Story: s.Number, Side: side, Title: s.Name, Wanted: s.Wanted}
	c, err := measure.Connect(ctx, o.kubeconfig)
	if err != nil {
		return r, err
	}
	defer func() {
		ctx := context.WithoutCancel(ctx)
		nodes, e := c.Nodes(ctx)
		if e == nil {
			e = kubectl(ctx, o, append([]string{"uncordon"}, nodes...)...) // what a drain has left
		}
		err = errors.Join(err, e, c.End(ctx))
	}()
	if err := c.Configure(ctx, measure.Driver{Pools: s.Pools, Provisioner: p}); err != nil {
		return r, err
	}
	recording, stop := context.WithCancel(ctx)
	defer stop()
	tl, err := c.Record(recording)
	if err != nil {
		return r, err
	}
	began := make(chan time.Time, 1)
	ended := make(chan error, 1)
	t.say("story %d, %s: %s", s.Number, side, s.Title)
	go func() {
		ended <- s.begin(ctx, o, c, tl, func() { began <- time.Now() })
	}()
	var begin time.Time
	select {
	case begin = <-began:
	case err := <-ended:
		return r, err
	}
	var good time.Time
	err = poll(ctx, patience, func() bool {
		pods, err := c.Pods(ctx)
		if err != nil {
			return false
		}
		now := time.Now()
		r.Running, r.Failed, r.Said = tl.Running(), tl.SentBack(), said(measure.Unschedulable(pods))
		r.Seconds = now.Sub(begin).Seconds()
		if n := len(r.Course); n == 0 || r.Course[n-1].Running != r.Running {
			r.Course = append(r.Course, point{r.Seconds, r.Running})
		}
		if r.Running != s.Wanted {
			good = time.Time{}
		} else if good.IsZero() {
			good = now
		}
		t.set(s, r)
		return !good.IsZero() && now.Sub(good) >= stays
	})
	if r.Done = err == nil; r.Done {
		r.Seconds = good.Sub(begin).Seconds()
	} else if !wait.Interrupted(err) || ctx.Err() != nil {
		return r, err
	}
	t.set(s, r)
	return r, <-ended
}

// poll waits for a condition.
func poll(ctx context.Context, limit time.Duration, done func() bool) error {
	return wait.PollUntilContextTimeout(ctx, interval, limit, true, func(context.Context) (bool, error) { return done(), nil })
}

// said returns the reason that most pods have, without what it says of preemption.
func said(reasons map[string]int) string {
	best := ""
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		if best == "" || reasons[reason] > reasons[best] {
			best = reason
		}
	}
	best, _, _ = strings.Cut(best, " preemption:")
	return strings.TrimSuffix(best, ",")
}
