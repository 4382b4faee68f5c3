package bench

import (
	"fmt"
	"slices"
	"strings"
)

// Drain is a line of the table of queues.
type Drain struct {
	// Objects, Capacity, Room, Delay and Policy say which queue it is.
	Objects, Capacity, Room, Delay, Policy string
	// Failed is the number of wrong decisions, Rate has the pods per second.
	Failed, Rate string
	// Took is the time until the queue was empty, if it got empty. Left is the
	// number of pods otherwise.
	Took, Left string
}

// drainOrder is that of the values of Drain, each more important than the next.
var drainOrder = []string{"objects=node", "objects=zone", "capacity=changing", "capacity=constant", "room=plenty", "room=tight",
	"delay=0s", "delay=100ms", "delay=1s", "delay=10s", "policy=upstream", "policy=Object", "policy=InFlight"}

// Drains are the lines of the table of queues.
func (r Report) Drains() []Drain {
	var names []string
	for name := range r.Samples {
		if strings.HasPrefix(name, "Drain/") {
			names = append(names, name)
		}
	}
	rank := func(name string) []int {
		var ranks []int
		for _, part := range strings.Split(name, "/")[1:] {
			ranks = append(ranks, slices.Index(drainOrder, part))
		}
		return ranks
	}
	slices.SortFunc(names, func(a, b string) int { return slices.Compare(rank(a), rank(b)) })
	lines := make([]Drain, 0, len(names))
	for _, name := range names {
		lines = append(lines, r.drain(name))
	}
	return lines
}

func (r Report) drain(name string) Drain {
	parts := map[string]string{}
	for _, part := range strings.Split(name, "/")[1:] {
		key, value, _ := strings.Cut(part, "=")
		parts[key] = value
	}
	d := Drain{Objects: parts["objects"], Capacity: parts["capacity"], Room: parts["room"], Delay: parts["delay"], Policy: parts["policy"]}
	if d.Capacity == "constant" {
		d.Delay = "–"
	}
	d.Failed, d.Rate = r.plain(name, "failed-provisions"), r.plain(name, "pods/s")
	d.Took, d.Left = r.plain(name, "drain-s")+" s", r.plain(name, "pods-left")
	if d.Left != "0" {
		d.Took = "–"
	}
	return d
}

// plain shows a median without its spread.
func (r Report) plain(name, unit string) string {
	value, ok := r.Samples.Median(name, unit)
	if !ok {
		return "not run"
	}
	return fmt.Sprintf("%.3g", value)
}
