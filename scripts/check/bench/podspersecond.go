// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"capacityv2.internal/scripts/ground/picture"
)

// workloads are those of scheduler_perf, by what the page calls them.
var workloads = []struct {
	name, label, test, suffix string
	color                     color.Color
}{
	{"without tracking", "without\ntracking", "DynamicProvisioning", "untracked", picture.Light},
	{"published, not checked", "published,\nnot checked", "DynamicProvisioning", "unchecked", picture.Gray},
	{"Object", "Object", "DynamicProvisioningObject", "object", picture.Violet},
	{"InFlight", "InFlight", "DynamicProvisioning", "gateon", picture.Blue},
}

// podsPerSecond is what a workload comes to.
func podsPerSecond(all results, nodes int, test, suffix string) (spread, error) {
	return all.spread(fmt.Sprintf("PerfScheduling/%s/%dNodes_%s", test, nodes, suffix), "SchedulingThroughput/Average")
}

// drawPodsPerSecond draws a bar for each workload, with the lowest and the highest run.
func drawPodsPerSecond(raw []byte) ([]byte, error) {
	all := parse(raw, "scheduler.txt")
	var images []*plot.Plot
	var sentences []string
	most := 0.0
	for _, nodes := range []int{500, 5000} {
		image := picture.New()
		image.Title.Text = fmt.Sprintf("Pods per second, %d nodes", nodes)
		image.Y.Min = 0
		var said, labels []string
		for i, w := range workloads {
			s, err := podsPerSecond(all, nodes, w.test, w.suffix)
			if err != nil {
				return nil, err
			}
			bar, err := plotter.NewBarChart(plotter.Values{s.median}, 1.3*vg.Centimeter)
			if err != nil {
				return nil, err
			}
			bar.XMin, bar.Color, bar.LineStyle.Width = float64(i), w.color, 0
			at := plotter.XYs{{X: float64(i), Y: s.median}}
			runs, err := plotter.NewYErrorBars(struct {
				plotter.XYs
				plotter.YErrors
			}{at, plotter.YErrors{{Low: s.median - s.lowest, High: s.highest - s.median}}})
			if err != nil {
				return nil, err
			}
			value, err := picture.Texts([]string{number(s.median)}, plotter.XYs{{X: float64(i), Y: s.highest}}, 10, text.XCenter, text.YBottom, vg.Point{Y: vg.Points(3)})
			if err != nil {
				return nil, err
			}
			image.Add(bar, runs, value)
			most = max(most, s.highest)
			said, labels = append(said, number(s.median)+" "+w.name), append(labels, w.label)
		}
		image.NominalX(labels...)
		images = append(images, image)
		sentences = append(sentences, fmt.Sprintf("Pods per second at %d nodes: %s.", nodes, strings.Join(said, "; ")))
	}
	for _, image := range images {
		image.Y.Max = most * 1.1 // the same scale, with room for the numbers
	}
	return picture.Row(strings.Join(sentences, " "), 9*vg.Centimeter, 7.5*vg.Centimeter, images...)
}
