// SPDX-License-Identifier: Apache-2.0

package measure

import "time"

// Result is what a run of a scenario comes down to. Times are in seconds.
type Result struct {
	// Failed is how many volumes were asked for where there was no room, new ones and
	// those that had to be rebuilt.
	Failed int
	// Wait is the longest time that a pod had no node while a node had room for it.
	Wait float64
}

// Result evaluates the record for pods with one volume each: places is how many volumes
// fit on each node.
func (tl *Timeline) Result(places map[string]int, end time.Time) Result {
	tl.mutex.Lock()
	defer tl.mutex.Unlock()
	r := Result{Failed: tl.sentBack + tl.refused.Len()}
	for _, p := range tl.pods {
		until := p.decided
		if until.IsZero() {
			until = end
			if !p.deleted.IsZero() {
				until = p.deleted
			}
		}
		r.Wait = max(r.Wait, tl.besideRoom(places, p.created, until).Seconds())
	}
	return r
}

// besideRoom is the longest time without interruption between from and until in which
// some node had a free place.
func (tl *Timeline) besideRoom(places map[string]int, from, until time.Time) time.Duration {
	used := map[string]int{}
	free := func() bool {
		for node, n := range places {
			if used[node] < n {
				return true
			}
		}
		return false
	}
	var longest time.Duration
	since := from
	wasFree := true
	step := func(now time.Time) {
		if wasFree && now.After(since) {
			longest = max(longest, now.Sub(since))
		}
	}
	for _, c := range tl.changes {
		if c.at.After(until) {
			break
		}
		used[c.node] += c.delta
		if isFree := free(); isFree != wasFree {
			at := c.at
			if at.Before(from) {
				at = from
			}
			step(at)
			wasFree, since = isFree, at
		}
	}
	step(until)
	return longest
}
