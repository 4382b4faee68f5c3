// SPDX-License-Identifier: Apache-2.0

// Package picture draws plots as SVG for all readers: with letters without serifs, a background for dark pages, and a
// title for those who do not see it.
package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The colors differ for the color-blind, too.
var (
	Red    = color.RGBA{R: 200, G: 60, B: 40, A: 255}
	Amber  = color.RGBA{R: 200, G: 120, B: 0, A: 255}
	Violet = color.RGBA{R: 140, G: 90, B: 170, A: 255}
	Blue   = color.RGBA{R: 30, G: 90, B: 180, A: 255}
	Green  = color.RGBA{R: 20, G: 145, B: 115, A: 255}
	Gray   = color.RGBA{R: 130, G: 130, B: 130, A: 255}
	Light  = color.RGBA{R: 190, G: 190, B: 190, A: 255}
)

// New returns an empty plot.
func New() *plot.Plot {
	p := plot.New()
	for style, size := range map[*text.Style]vg.Length{
		&p.Title.TextStyle: 11, &p.Legend.TextStyle: 9,
		&p.X.Label.TextStyle: 9, &p.Y.Label.TextStyle: 9, &p.X.Tick.Label: 9, &p.Y.Tick.Label: 9,
	} {
		style.Font = sans(size)
	}
	return p
}

func sans(size vg.Length) font.Font {
	return font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size)
}

// Texts writes each text beside its point.
func Texts(texts []string, at plotter.XYs, size vg.Length, x text.XAlignment, y text.YAlignment, offset vg.Point) (*plotter.Labels, error) {
	labels, err := plotter.NewLabels(plotter.XYLabels{XYs: at, Labels: texts})
	if err != nil {
		return nil, err
	}
	labels.Offset = offset
	for i := range labels.TextStyle {
		labels.TextStyle[i].Font, labels.TextStyle[i].XAlign, labels.TextStyle[i].YAlign = sans(size), x, y
	}
	return labels, nil
}

// Row draws plots of one width and height beside each other. The title tells what they show.
func Row(title string, width, height vg.Length, plots ...*plot.Plot) ([]byte, error) {
	if len(plots) == 0 {
		return nil, errors.New("there is nothing to draw")
	}
	canvas := vgsvg.New(width*vg.Length(len(plots)), height)
	page := draw.New(canvas)
	page.SetColor(color.White) // for readers with a dark background
	page.Fill(page.Rectangle.Path())
	tiles := draw.Tiles{Rows: 1, Cols: len(plots), PadX: vg.Centimeter, PadTop: vg.Points(4), PadBottom: vg.Points(4), PadLeft: vg.Points(4), PadRight: vg.Points(4)}
	for i, c := range plot.Align([][]*plot.Plot{plots}, tiles, page)[0] {
		plots[i].Draw(c)
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return nil, err
	}
	// Not all readers have the font, and some do not see the picture.
	head, body, _ := strings.Cut(strings.ReplaceAll(svg.String(), "Liberation Sans", "Liberation Sans,sans-serif"), "<g ")
	var escaped bytes.Buffer
	if err := xml.EscapeText(&escaped, []byte(title)); err != nil {
		return nil, err
	}
	return []byte(head + "<title>" + escaped.String() + "</title>\n<g " + body), nil
}
