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
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/picture"
)

// storyResult is what a story comes to on one side, as test-e2e/demo writes it.
type storyResult struct {
	Story       int
	Side, Title string
	Wanted      int
	// Running is how many pods run in the end, Failed how many volumes were asked for where there was no room.
	Running, Failed int
}

// barRoom is how much higher a picture is than its bars, for the numbers above them and the legend.
const barRoom = 1.5

// The pictures stand beside each other.
const (
	storyWidth  = 9 * vg.Centimeter
	storyHeight = 7 * vg.Centimeter
	barWidth    = 1.4 * vg.Centimeter
)

var colors = map[string]color.Color{"before": picture.Red, "after": picture.Blue}

// drawStories reads the results and draws a picture for each story: how many pods run, and how
// many volumes were asked for where there was no room.
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
		lines = append(lines, fmt.Sprintf("Story %d (%s), %s: %d of %d pods run, %d volumes refused.", r.Story, r.Title, r.Side, r.Running, r.Wanted, r.Failed))
	}
	return strings.Join(lines, " ")
}

// storyPlots returns one for each story, in the order of the results.
func storyPlots(all []storyResult) ([]*plot.Plot, error) {
	var list []*plot.Plot
	stories := map[int]*plot.Plot{}
	for _, r := range all {
		p := stories[r.Story]
		if p == nil {
			p = picture.New()
			p.Title.Text = fmt.Sprintf("Story %d: %s", r.Story, r.Title)
			p.Y.Min, p.Y.Max = 0, float64(r.Wanted)*barRoom
			p.Y.Tick.Marker = plot.TickerFunc(wholeNumbers)
			p.NominalX("pods that run", "volumes refused")
			p.Legend.Top, p.Legend.Left = true, true
			stories[r.Story] = p
			list = append(list, p)
		}
		if err := addSide(p, r); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("there is no story")
	}
	return list, nil
}

// addSide draws one side of a story.
func addSide(p *plot.Plot, r storyResult) error {
	values := plotter.Values{float64(r.Running), float64(r.Failed)}
	bars, err := plotter.NewBarChart(values, barWidth)
	if err != nil {
		return err
	}
	bars.Color, bars.LineStyle.Width, bars.Offset = colors[r.Side], 0, barWidth/2
	if r.Side == "before" {
		bars.Offset = -bars.Offset
	}
	labels, err := picture.Texts([]string{strconv.Itoa(r.Running), strconv.Itoa(r.Failed)}, plotter.XYs{{X: 0, Y: values[0]}, {X: 1, Y: values[1]}},
		10, text.XCenter, text.YBottom, vg.Point{X: bars.Offset, Y: vg.Points(2)})
	if err != nil {
		return err
	}
	p.Add(bars, labels)
	p.Legend.Add(r.Side, bars)
	p.Y.Max = max(p.Y.Max, values[0]*barRoom, values[1]*barRoom)
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
