package bench

import (
	"errors"
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// WritePlot draws the time of a filter pass over the number of nodes, as SVG.
func (r Report) WritePlot(w io.Writer) error {
	p := plot.New()
	p.Title.Text = "One filter pass over all nodes"
	p.X.Label.Text = "nodes, and capacity objects"
	p.Y.Label.Text = "seconds"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())

	lines := 0
	for _, scheduler := range []struct {
		name  string
		paint color.Color
	}{
		{"upstream", color.RGBA{R: 200, G: 60, B: 40, A: 255}},
		{"gate-off", color.RGBA{R: 110, G: 110, B: 110, A: 255}},
		{"gate-on", color.RGBA{R: 30, G: 90, B: 180, A: 255}},
	} {
		for i, claims := range []int{1, 3} {
			var points plotter.XYs
			for _, nodes := range []int{100, 1000, 5000, 15000} {
				if seconds, ok := r.Samples.Median(passName(nodes, claims, 0, scheduler.name), second); ok {
					points = append(points, plotter.XY{X: float64(nodes), Y: seconds})
				}
			}
			if len(points) == 0 {
				continue
			}
			lines++
			line, marks, err := plotter.NewLinePoints(points)
			if err != nil {
				return err
			}
			line.Color, marks.Color = scheduler.paint, scheduler.paint
			marks.Shape = draw.CircleGlyph{}
			if i > 0 {
				line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
			}
			p.Add(line, marks)
			p.Legend.Add(fmt.Sprintf("%s, %d new volume(s)", scheduler.name, claims), line, marks)
		}
	}
	if lines == 0 {
		return errors.New("no results of BenchmarkFindPodVolumesCapacity")
	}
	image, err := p.WriterTo(16*vg.Centimeter, 11*vg.Centimeter, "svg")
	if err != nil {
		return err
	}
	_, err = image.WriteTo(w)
	return err
}
