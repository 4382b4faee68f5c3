package main

import (
	"cmp"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// fault is what was done to a part of the cluster while its metrics were collected.
type fault struct {
	at   time.Time
	what string
}

// listColumns is how many faults stand in a line of the list below the panels.
const listColumns = 5

// readFaults returns them in the order of time.
func readFaults(dir string) ([]fault, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.fault"))
	if err != nil {
		return nil, err
	}
	var all []fault
	for _, file := range files {
		seconds, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(file), ".fault"), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: want a name as 30.fault: %w", file, err)
		}
		what, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all = append(all, fault{at: time.Unix(seconds, 0), what: string(what)})
	}
	slices.SortFunc(all, func(a, b fault) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.what, b.what)) })
	return all, nil
}

// markFaults draws a line with a number for each fault.
func markFaults(g *plot.Plot, faults []fault, from time.Time) error {
	var labels plotter.XYLabels
	for i, f := range faults {
		x := f.at.Sub(from).Minutes()
		if err := addMark(g, plotter.XYs{{X: x, Y: 0}, {X: x, Y: g.Y.Max}}, color.Gray{Y: 150}); err != nil {
			return err
		}
		labels.XYs, labels.Labels = append(labels.XYs, plotter.XY{X: x}), append(labels.Labels, strconv.Itoa(i+1))
	}
	if len(faults) == 0 {
		return nil
	}
	numbers, err := plotter.NewLabels(labels)
	if err != nil {
		return err
	}
	for i := range numbers.TextStyle {
		numbers.TextStyle[i].Font.Size, numbers.TextStyle[i].Color = 6, color.Gray{Y: 100}
	}
	g.Add(numbers)
	return nil
}

// markThresholds draws a line for each threshold of a panel that its lines come near to.
func markThresholds(g *plot.Plot, p panel) error {
	for _, s := range p.FieldConfig.Defaults.Thresholds.Steps {
		if s.Value == nil || *s.Value/p.scale() > g.Y.Max {
			continue
		}
		y := *s.Value / p.scale()
		if err := addMark(g, plotter.XYs{{X: g.X.Min, Y: y}, {X: g.X.Max, Y: y}}, color.RGBA{R: 200, A: 255}); err != nil {
			return err
		}
	}
	return nil
}

func addMark(g *plot.Plot, points plotter.XYs, c color.Color) error {
	l, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	l.Color, l.Width, l.Dashes = c, 0.7, []vg.Length{2, 2}
	g.Add(l)
	return nil
}

// listHeight is the room of the list below the panels.
func listHeight(faults []fault) vg.Length {
	return vg.Length((len(faults)+listColumns-1)/listColumns) * line * 0.7
}

// listFaults says what the numbers stand for.
func listFaults(page draw.Canvas, faults []fault, from time.Time) {
	style := text.Style{Color: color.Black, Font: plot.DefaultFont, Handler: plot.DefaultTextHandler}
	style.Font.Size = 9
	width, top := (page.Max.X-page.Min.X)/listColumns, page.Min.Y+listHeight(faults)
	for i, f := range faults {
		at := vg.Point{X: page.Min.X + vg.Length(i%listColumns)*width + 5, Y: top - vg.Length(i/listColumns+1)*line*0.7 + 5}
		page.FillText(style, at, fmt.Sprintf("%d  %.1f min: %s", i+1, f.at.Sub(from).Minutes(), f.what))
	}
}
