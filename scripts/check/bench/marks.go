package bench

import (
	"image/color"
	"strings"

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

// addBar draws a bar that lies at a height, and texts of its color at its end.
func addBar(image *plot.Plot, c color.Color, at, thick, value float64, said ...string) error {
	bar, err := plotter.NewPolygon(plotter.XYs{{X: 0, Y: at - thick/2}, {X: value, Y: at - thick/2}, {X: value, Y: at + thick/2}, {X: 0, Y: at + thick/2}})
	if err != nil {
		return err
	}
	bar.Color, bar.LineStyle.Width = c, 0
	label, err := picture.Texts([]string{strings.Join(said, ", ")}, plotter.XYs{{X: value, Y: at}}, 7, text.XLeft, text.YCenter, vg.Point{X: vg.Points(2)})
	if err != nil {
		return err
	}
	label.TextStyle[0].Color = c
	image.Add(bar, label)
	return nil
}

// every marks the multiples of a step on an axis.
type every float64

func (step every) Ticks(low, high float64) (ticks []plot.Tick) {
	for v := 0.0; v <= high; v += float64(step) {
		ticks = append(ticks, plot.Tick{Value: v, Label: number(v)})
	}
	return ticks
}

// named marks values by names, without lines. The spaces are for letters that are wider than those it was drawn with.
func named(axis *plot.Axis, values []float64, names []string) {
	var ticks plot.ConstantTicks
	for i, v := range values {
		ticks = append(ticks, plot.Tick{Value: v, Label: names[i] + "    "})
	}
	axis.Tick.Marker, axis.Tick.Length = ticks, 0
}
