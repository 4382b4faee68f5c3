// SPDX-License-Identifier: Apache-2.0

package drivershapes

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// attempts is how often a row is played before it fails: times are compared, on a machine that does
// other things, too.
const attempts = 3

// TestShapes plays each shape.
func TestShapes(t *testing.T) {
	lengthen()
	stock, gate := newSides()
	tCtx := ktesting.Init(t)
	stock.start(tCtx)
	gate.start(tCtx)
	results := record{rows: map[string]row{}}
	t.Cleanup(func() { results.write(t) })
	for i := range shapes {
		shape := &shapes[i]
		t.Run(shape.name, func(t *testing.T) {
			t.Parallel()
			var err error
			for attempt := range attempts {
				var all map[string]result
				ktesting.Init(t).Run(fmt.Sprint(attempt+1), func(tCtx ktesting.TContext) {
					all = compare(tCtx, stock, gate, shape, fmt.Sprintf("%s-%d", strings.Join(strings.FieldsFunc(shape.name, func(r rune) bool { return r == ' ' || r == ',' }), "-"), attempt+1))
				})
				results.add(shape, all)
				if err = shape.check(all); err == nil || t.Failed() {
					break
				}
				t.Logf("once more: %v", err)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// result is what comes out of a load.
type result struct {
	Stock outcome `json:"stock"`
	Gate  outcome `json:"gate"`
}

// compare plays a shape on both sides at the same time, so that the machine is as busy for one as for the other.
func compare(tCtx ktesting.TContext, stock, gate *side, shape *shape, name string) map[string]result {
	tCtx.Helper()
	var s, g *player
	var group sync.WaitGroup
	group.Go(func() { s = newPlayer(tCtx, stock, shape, name) })
	group.Go(func() { g = newPlayer(tCtx, gate, shape, name) })
	group.Wait()
	if s == nil || g == nil {
		tCtx.FailNow() // in its goroutine, one has failed already
	}
	var mutex sync.Mutex
	all := map[string]result{}
	ended := map[string]bool{} // with the stock programs
	group.Go(func() {
		s.play(func(_ load, o outcome, quiet bool, _ time.Duration) bool { return o.Running == o.Pods || quiet }, func(l load, o outcome) {
			mutex.Lock()
			defer mutex.Unlock()
			all[l.name], ended[l.name] = result{Stock: o}, true
		})
	})
	group.Go(func() {
		g.play(func(l load, o outcome, quiet bool, since time.Duration) bool {
			mutex.Lock()
			want, ended := all[l.name].Stock, ended[l.name]
			mutex.Unlock()
			if o.Running < want.Running {
				return since > want.last(want.Running)+late+l.later(shape) && quiet
			}
			return ended && (o.Running == o.Pods || quiet)
		}, func(l load, o outcome) {
			mutex.Lock()
			defer mutex.Unlock()
			all[l.name] = result{Stock: all[l.name].Stock, Gate: o}
		})
	})
	group.Wait()
	for _, l := range shape.loads() {
		r := all[l.name]
		r.Stock.Last, r.Gate.Last = r.Stock.last(r.Stock.Running).Seconds(), r.Gate.last(min(r.Stock.Running, r.Gate.Running)).Seconds()
		all[l.name] = r
		tCtx.Logf("%-8s stock: %s, %.1f s, %q; gate: %s, %.1f s, %q", l.name, r.Stock, r.Stock.Last, r.Stock.Waits, r.Gate, r.Gate.Last, r.Gate.Waits)
	}
	s.clean()
	g.clean()
	return all
}

// last returns when the n-th pod had its node.
func (o outcome) last(n int) time.Duration {
	if n == 0 {
		return 0
	}
	return o.placed[n-1]
}

// check returns what is worse with the gate, and is not as the shape says. Where the driver has the room that it says, and
// says it at once, no volume is refused.
func (s *shape) check(all map[string]result) error {
	var errs []error
	var stock, gate outcome
	repeats, isAnyWorse := false, false
	for _, l := range s.loads() {
		r, refuses := all[l.name], slices.Contains(s.refuses, l.name)
		isWorse := slices.Contains(s.worse, l.name) && (r.Gate.Running < r.Stock.Running || !s.restarts)
		if r.Gate.Running <= r.Stock.Running {
			// More pods may have more volumes refused.
			stock.add(r.Stock)
			gate.add(r.Gate)
		}
		switch most := r.Stock.Last + (r.Stock.slow + late + l.later(s)).Seconds(); {
		case r.Gate.Running < r.Stock.Running && isWorse:
			isAnyWorse = true
		case r.Gate.Running < r.Stock.Running:
			errs = append(errs, fmt.Errorf("%s: %d pods run, with the stock programs %d", l.name, r.Gate.Running, r.Stock.Running))
		case r.Gate.Last > most:
			errs = append(errs, fmt.Errorf("%s: the last pod has its node after %.1f s, want it in %.1f", l.name, r.Gate.Last, most))
		}
		if r.Gate.Refused > 0 && !refuses && s.config.Lag == 0 {
			errs = append(errs, fmt.Errorf("%s: %d volumes are refused, want none", l.name, r.Gate.Refused))
		}
		for _, waits := range r.Gate.Waits {
			if repeats = repeats || strings.Contains(waits, refused); s.config.Immediate && waits == unbound {
				continue
			}
			errs = append(errs, l.checkReasons(waits, isWorse, refuses))
		}
	}
	if gate.Refused > stock.Refused {
		errs = append(errs, fmt.Errorf("%d volumes are refused, with the stock programs %d", gate.Refused, stock.Refused))
	}
	// What was shown before its object was deleted waits for nothing.
	if len(s.worse) > 0 && !isAnyWorse && !s.restarts {
		errs = append(errs, fmt.Errorf("no fewer pods run, although %s says so", s.guide))
	}
	if s.repeats && !repeats {
		errs = append(errs, fmt.Errorf("no pod waits because %s", refused))
	}
	return errors.Join(errs...)
}

// checkReasons checks why a pod waits with the gate: on each node for something that is expected.
func (l load) checkReasons(waits string, isWorse, refuses bool) error {
	allowed, nodes := []string{clustertest.NoRoom}, 0
	switch {
	case isWorse && !strings.Contains(waits, clustertest.Reserved):
		return fmt.Errorf("%s: a pod waits because of %q, want it to be for what is reserved", l.name, waits)
	case refuses && waits == notTried:
		return nil // it was refused, or is tried again after that
	case isWorse, l.alive > 0: // or the number is the same after a volume was deleted and another one created
		allowed = append(allowed, clustertest.Reserved)
	}
	if refuses {
		allowed = append(allowed, afterRefusals...)
	}
	for one := range strings.SplitSeq(waits, ", ") {
		number, reason, _ := strings.Cut(one, " ")
		n, err := strconv.Atoi(number)
		if err != nil || !slices.Contains(allowed, reason) {
			return fmt.Errorf("%s: a pod waits because of %q, want any of %q", l.name, waits, allowed)
		}
		nodes += n
	}
	if nodes < nodesEach {
		return fmt.Errorf("%s: a pod waits because of %q, want a reason of each of %d nodes", l.name, waits, nodesEach)
	}
	return nil
}
