package main

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	// rateInterval is how far rates of a picture look back.
	rateInterval = "20s"
	// column and line are the units of a panel's position in a dashboard.
	column, line = 1.6 * vg.Centimeter, 0.8 * vg.Centimeter
	// columns is how many there are.
	columns = 24
)

// drawDashboard draws all panels of the folder's dashboard where it places them, from scrapes.
func drawDashboard(folder, scrapes, picture string) error {
	d, err := readDashboard(filepath.Join(folder, "dashboard.json"))
	if err != nil {
		return err
	}
	db, from, to, err := readScrapes(scrapes)
	if err != nil {
		return err
	}
	faults, err := readFaults(scrapes)
	if err != nil {
		return err
	}
	lines := 0
	for _, p := range d.Panels {
		lines = max(lines, p.GridPos.Y+p.GridPos.H)
	}
	canvas := vgsvg.New(columns*column, vg.Length(lines)*line+listHeight(faults))
	page := draw.New(canvas)
	page.SetColor(color.White) // for readers with a dark background
	page.Fill(page.Rectangle.Path())
	drawn := 0
	for _, p := range d.Panels {
		g, n, err := db.plot(p, from, to)
		if err != nil {
			return fmt.Errorf("panel %s: %w", p.Title, err)
		}
		if p.Type != "row" {
			if err := errors.Join(markFaults(g, faults, from), markThresholds(g, p)); err != nil {
				return fmt.Errorf("panel %s: %w", p.Title, err)
			}
		}
		g.Draw(area(page, p))
		drawn += n
	}
	listFaults(page, faults, from)
	if drawn == 0 {
		return fmt.Errorf("%s has nothing that the dashboard shows", scrapes)
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	return os.WriteFile(picture, svg.Bytes(), 0o644)
}

// area is where a panel is on the page.
func area(page draw.Canvas, p panel) draw.Canvas {
	const gap = 0.2 * vg.Centimeter
	left, top := vg.Length(p.GridPos.X)*column, page.Max.Y-vg.Length(p.GridPos.Y)*line
	page.Min.X, page.Max.X = left+gap, left+vg.Length(p.GridPos.W)*column-gap
	page.Min.Y, page.Max.Y = top-vg.Length(p.GridPos.H)*line+gap, top-gap
	return page
}

// plot returns the graph of a panel, and how many lines it has. A row is a title alone.
func (d database) plot(p panel, from, to time.Time) (*plot.Plot, int, error) {
	g := plot.New()
	g.Title.Text = p.Title
	g.Title.TextStyle.Font.Size = 11
	g.Legend.Top, g.Legend.Left = true, true
	g.Legend.TextStyle.Font.Size = 8
	if p.Type == "row" {
		g.HideAxes()
		return g, 0, nil
	}
	g.X.Label.Text, g.X.Label.TextStyle.Font.Size = "minutes", 8
	g.Y.Label.Text, g.Y.Label.TextStyle.Font.Size = p.unit(), 8
	g.X.Min, g.X.Max = 0, to.Sub(from).Minutes()
	g.X.Tick.Marker = plot.TickerFunc(minutes)
	g.Y.Min = 0
	g.Add(plotter.NewGrid())
	n, highest := 0, 0.0
	for i, target := range p.Targets {
		matrix, err := d.queryRange(p.expr(i, rateInterval), from, to)
		if err != nil {
			return nil, 0, err
		}
		for _, series := range matrix {
			parts, most := p.parts(series.Floats, from)
			for i, points := range parts {
				l, err := plotter.NewLine(points)
				if err != nil {
					return nil, 0, err
				}
				l.Color, l.Width, l.StepStyle = plotutil.Color(n), 1.2, plotter.PostStep
				g.Add(l)
				if i == 0 {
					g.Legend.Add(legend(target.LegendFormat, series.Metric), l)
				}
			}
			if len(parts) > 0 {
				n, highest = n+1, max(highest, most)
			}
		}
	}
	// The legend is above the lines.
	g.Y.Max = max(highest, 0.01) * (1.1 + 0.13*float64(n))
	return g, n, nil
}

// minutes are the marks of the time.
func minutes(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for m := math.Ceil(low); m <= high; m++ {
		ticks = append(ticks, plot.Tick{Value: m, Label: strconv.Itoa(int(m))})
	}
	return ticks
}

// parts are the points of a line between its gaps, and the highest value. There is a gap where nobody had the
// metric, or nothing had happened of which there is a quantile.
func (p panel) parts(floats []promql.FPoint, from time.Time) (parts []plotter.XYs, highest float64) {
	last := time.Time{}
	for _, f := range floats {
		if math.IsNaN(f.F) || math.IsInf(f.F, 0) {
			continue
		}
		at, value := time.UnixMilli(f.T), f.F/p.scale()
		if at.Sub(last) > step {
			parts = append(parts, nil)
		}
		last, highest = at, max(highest, value)
		parts[len(parts)-1] = append(parts[len(parts)-1], plotter.XY{X: at.Sub(from).Minutes(), Y: value})
	}
	return parts, highest
}

// scale is what a value is divided by.
func (p panel) scale() float64 {
	if p.FieldConfig.Defaults.Unit == "bytes" {
		return 1 << 30
	}
	return 1
}

// unit is what the axis says.
func (p panel) unit() string {
	switch unit := p.FieldConfig.Defaults.Unit; unit {
	case "bytes":
		return "GiB"
	case "s":
		return "seconds"
	case "ops":
		return "per second"
	case "short":
		return ""
	default:
		return unit
	}
}

// legend is the name of a line.
func legend(format string, metric labels.Labels) string {
	return legendLabel.ReplaceAllStringFunc(format, func(found string) string {
		return metric.Get(legendLabel.FindStringSubmatch(found)[1])
	})
}
