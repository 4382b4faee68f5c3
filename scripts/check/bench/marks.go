// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"capacityv2.internal/scripts/ground/picture"
)

// addLine draws a line with its points, and its name beside one of them.
func addLine(image *plot.Plot, c color.Color, points plotter.XYs, name string, named int) error {
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = c, vg.Points(1.5)
	dots.Color, dots.Shape, dots.Radius = c, draw.CircleGlyph{}, vg.Points(2.5)
	label, err := picture.Texts([]string{name}, points[named:named+1], 10, text.XLeft, text.YBottom, vg.Point{X: vg.Points(5), Y: vg.Points(2)})
	if err != nil {
		return err
	}
	label.TextStyle[0].Color = c
	image.Add(line, dots, label)
	return nil
}

// named marks values by names, without lines. The spaces are for letters that are wider than those it was drawn with.
func named(axis *plot.Axis, values []float64, names []string) {
	var ticks plot.ConstantTicks
	for i, v := range values {
		ticks = append(ticks, plot.Tick{Value: v, Label: names[i] + "    "})
	}
	axis.Tick.Marker, axis.Tick.Length = ticks, 0
}
