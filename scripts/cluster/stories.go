// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"image/color"
	"math"
	"os"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/picture"
)

// storyResult is what a story comes to on one side, as test-e2e/demo writes it.
type storyResult struct {
	Story       int
	Side, Title string
	// Running of Wanted pods run in the end.
	Running, Wanted int
	// Failed is how many volumes were asked for where there was no room.
	Failed int
	// Seconds is the time until all run, or that they were waited for.
	Seconds float64
	// Course is how many run from a second on.
	Course []struct {
		Seconds float64
		Running int
	}
}

// legendRoom is how much higher a picture is than its lines, for the legend.
const legendRoom = 1.4

// The pictures stand beside each other.
const (
	storyWidth  = 9 * vg.Centimeter
	storyHeight = 7 * vg.Centimeter
)

// sideColors are those of the sides, in the order in which they are told.
var sideColors = []color.Color{picture.Red, picture.Blue}

// drawStories reads the results and draws a picture for each story: how many pods run, over time.
func drawStories(results, out string) error {
	var all []storyResult
	if err := files.ReadJSON(results, &all); err != nil {
		return err
	}
	plots, err := storyPlots(all)
	if err != nil {
		return fmt.Errorf("%s: %w", results, err)
	}
	svg, err := picture.Row(describe(all), storyWidth, storyHeight, plots...)
	if err != nil {
		return err
	}
	return os.WriteFile(out, svg, 0o644)
}

// describe tells what the picture shows.
func describe(all []storyResult) string {
	var lines []string
	for _, r := range all {
		lines = append(lines, fmt.Sprintf("Story %d (%s), %s; %d volumes refused.", r.Story, r.Title, r.outcome(), r.Failed))
	}
	return strings.Join(lines, " ")
}

// outcome is how many pods run in the end, and since when.
func (r storyResult) outcome() string {
	return fmt.Sprintf("%s: %d of %d run after %.1f s", r.Side, r.Running, r.Wanted, r.Seconds)
}

// storyPlots returns one for each story, in the order of the results.
func storyPlots(all []storyResult) ([]*plot.Plot, error) {
	ends := map[int]float64{}
	for _, r := range all {
		ends[r.Story] = max(ends[r.Story], r.Seconds)
	}
	var list []*plot.Plot
	stories := map[int]*plot.Plot{}
	sides := map[int]int{}
	for _, r := range all {
		p := stories[r.Story]
		if p == nil {
			p = picture.New()
			p.Title.Text = fmt.Sprintf("Story %d: %s", r.Story, r.Title)
			p.X.Label.Text, p.Y.Label.Text = "seconds", fmt.Sprintf("pods that run, of %d", r.Wanted)
			p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, ends[r.Story], 0, float64(r.Wanted)*legendRoom
			p.Y.Tick.Marker = plot.TickerFunc(func(low, _ float64) []plot.Tick { return wholeNumbers(low, float64(r.Wanted)) })
			p.Legend.Top, p.Legend.Left = true, true
			stories[r.Story] = p
			list = append(list, p)
		}
		if err := addSide(p, r, sideColors[sides[r.Story]%len(sideColors)], ends[r.Story]); err != nil {
			return nil, err
		}
		sides[r.Story]++
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("there is no story")
	}
	return list, nil
}

// addSide draws one side of a story, up to the end of the other one.
func addSide(p *plot.Plot, r storyResult, c color.Color, end float64) error {
	points := plotter.XYs{{X: 0, Y: 0}}
	for _, change := range r.Course {
		points = append(points, plotter.XY{X: change.Seconds, Y: float64(change.Running)})
	}
	points = append(points, plotter.XY{X: end, Y: float64(r.Running)})
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.StepStyle, line.Width, line.Color = plotter.PostStep, vg.Points(2), c
	p.Add(line)
	p.Legend.Add(r.outcome(), line)
	return nil
}

// wholeNumbers are the marks of an axis that counts.
func wholeNumbers(low, high float64) []plot.Tick {
	step := max(1, math.Ceil(high/8))
	var ticks []plot.Tick
	for v := math.Ceil(low); v <= high; v += step {
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.Itoa(int(v))})
	}
	return ticks
}
