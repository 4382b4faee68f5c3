package bench

import (
	"errors"
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"capacityv2.internal/scripts/ground/picture"
)

// policies are those of the queue of pods, by what the page calls them.
var policies = []struct {
	policy, name string
	color        color.Color
}{
	{"upstream", "gate off", picture.Amber}, {"Object", "Object", picture.Violet},
	{"InFlight", "InFlight", picture.Blue}, {"confirmed", "confirmed", picture.Green},
}

// scenario is one of those in tight room.
type scenario struct{ storage, capacity, delay string }

func scenarios() (all []scenario) {
	for _, storage := range []string{"node", "pools", "zone"} {
		for _, delay := range []string{"0s", "100ms", "1s", "10s"} {
			all = append(all, scenario{storage, "changing", delay})
		}
		all = append(all, scenario{storage, "constant", "1s"})
	}
	return all
}

// of returns what a policy comes to in this scenario.
func (s scenario) of(all results, policy, unit string) (spread, error) {
	name := fmt.Sprintf("Drain/storage=%s/capacity=%s/room=tight/delay=%s/policy=%s", s.storage, s.capacity, s.delay, policy)
	return all.spread(name, unit)
}

func (s scenario) String() string {
	if s.capacity == "constant" {
		return s.storage + ", constant"
	}
	return s.storage + ", after " + s.delay
}

// The scenarios of a storage are 1 from each other.
const (
	storageGap = 0.4
	thickness  = 0.22 // of a bar
)

// height is where a scenario is drawn. The first one is at the top.
func height(i int) float64 { return -float64(i) - storageGap*float64(i/5) }

// drawQueue draws, for each scenario in tight room, how many volumes were refused, and how long it took.
func drawQueue(raw []byte) ([]byte, error) {
	all := parse(raw, "queue.txt")
	refused, waited := picture.New(), picture.New()
	refused.Title.Text, waited.Title.Text = "Volumes refused", "Seconds until the last pod had a node"
	refused.X.Tick.Marker, waited.X.Tick.Marker = every(50), every(5)
	var names []string
	var heights []float64
	for i, s := range scenarios() {
		names, heights = append(names, s.String()), append(heights, height(i))
	}
	var said []string
	for p, policy := range policies {
		var most, longest float64
		var refusing, leaving int
		for i, s := range scenarios() {
			failed, err := s.of(all, policy.policy, "failed-provisions")
			took, err2 := s.of(all, policy.policy, "drain-s")
			left, err3 := s.of(all, policy.policy, "pods-left")
			if err := errors.Join(err, err2, err3); err != nil {
				return nil, err
			}
			var failures, leftover []string
			if failed.median > 0 {
				failures = append(failures, number(failed.median))
				refusing++
			}
			if left.median > 0 {
				leftover = append(leftover, number(left.median)+" left")
				leaving++
			}
			if i == 0 { // in place of a legend
				failures, leftover = append(failures, policy.name), append(leftover, policy.name)
			}
			at := heights[i] + (1.5-float64(p))*thickness
			err = errors.Join(addBar(refused, policy.color, at, thickness, failed.median, failures...), addBar(waited, policy.color, at, thickness, took.median, leftover...))
			if err != nil {
				return nil, err
			}
			most, longest = max(most, failed.median), max(longest, took.median)
		}
		said = append(said, fmt.Sprintf("%s: volumes refused in %d, at most %s; pods left in %d; at most %s seconds.", policy.name, refusing, number(most), leaving, number(longest)))
	}
	for _, image := range []*plot.Plot{refused, waited} {
		named(&image.Y, heights, names)
		image.Y.Min, image.Y.Max = heights[len(heights)-1]-0.6, 0.6
		image.X.Min, image.X.Max = 0, image.X.Max*1.5 // there is room for the texts
	}
	title := fmt.Sprintf("%d scenarios in tight room. %s", len(scenarios()), strings.Join(said, " "))
	return picture.Row(title, 9.5*vg.Centimeter, 18*vg.Centimeter, refused, waited)
}
