// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"image/color"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"capacityv2.internal/scripts/ground/picture"
)

// drawFilterPass draws the time of a filter pass for a pod with a new volume over the number of nodes.
func drawFilterPass(raw []byte) ([]byte, error) {
	all := parse(raw, "scheduler.txt")
	image := picture.New()
	image.Title.Text = "One filter pass over all nodes, for a pod with one new volume"
	image.X.Label.Text = "nodes, each with a capacity object"
	image.X.Scale, image.Y.Scale = plot.LogScale{}, plot.LogScale{}
	image.X.Min, image.X.Max = 90, 40000 // there is room for the labels
	image.Y.Min, image.Y.Max = 20e-6, 50
	var nodes plot.ConstantTicks
	for _, n := range []int{100, 1000, 5000, 15000} {
		nodes = append(nodes, plot.Tick{Value: float64(n), Label: strconv.Itoa(n)})
	}
	image.X.Tick.Marker = nodes
	named(&image.Y, []float64{1e-4, 1e-3, 1e-2, 1e-1, 1, 10}, []string{"0.1 ms", "1 ms", "10 ms", "100 ms", "1 s", "10 s"})
	image.Add(plotter.NewGrid())
	var at5000 []string
	for _, line := range []struct {
		scheduler, name string
		color           color.Color
	}{
		{"upstream", "stock", picture.Red}, {"gate-off", "gate off", picture.Amber}, {"gate-on", "gate on", picture.Blue},
	} {
		var points plotter.XYs
		for _, n := range nodes {
			name := fmt.Sprintf("FindPodVolumesCapacity/nodes=%s/claims=1/updates=0/scheduler=%s", n.Label, line.scheduler)
			s, err := all.spread(name, "sec/op")
			if err != nil && line.scheduler == "upstream" && n.Label == "15000" {
				continue // a pass takes minutes
			}
			if err != nil {
				return nil, err
			}
			points = append(points, plotter.XY{X: n.Value, Y: s.median})
			if n.Label == "5000" {
				at5000 = append(at5000, took(s.median)+" with "+line.name)
			}
		}
		if err := addLine(image, line.color, points, line.name, len(points)-1); err != nil {
			return nil, err
		}
	}
	title := "Time of a filter pass over 100 to 15000 nodes, for a pod with one new volume. At 5000 nodes: " + strings.Join(at5000, ", ") + "."
	return picture.Row(title, 16*vg.Centimeter, 10*vg.Centimeter, image)
}
