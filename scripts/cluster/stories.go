package cluster

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/color"
	"math"
	"os"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"capacityv2.internal/scripts/ground/files"
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

var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

var colors = map[string]color.Color{
	"before": color.RGBA{R: 200, G: 60, B: 40, A: 255},
	"after":  color.RGBA{R: 30, G: 90, B: 180, A: 255},
}

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
	canvas := vgsvg.New(storyWidth*vg.Length(len(plots)), storyHeight)
	page := draw.New(canvas)
	page.SetColor(color.White) // for readers with a dark background
	page.Fill(page.Rectangle.Path())
	tiles := draw.Tiles{Rows: 1, Cols: len(plots), PadX: vg.Centimeter, PadTop: vg.Points(4), PadBottom: vg.Points(4), PadLeft: vg.Points(4), PadRight: vg.Points(4)}
	for i, c := range plot.Align([][]*plot.Plot{plots}, tiles, page)[0] {
		plots[i].Draw(c)
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	// Not all readers have the font, and some do not see the picture.
	head, body, _ := strings.Cut(strings.ReplaceAll(svg.String(), "Liberation Sans", "Liberation Sans,sans-serif"), "<g ")
	var title strings.Builder
	if err := xml.EscapeText(&title, []byte(describe(all))); err != nil {
		return err
	}
	return os.WriteFile(out, []byte(head+"<title>"+title.String()+"</title>\n<g "+body), 0o644)
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
			p = plot.New()
			p.Title.Text = fmt.Sprintf("Story %d: %s", r.Story, r.Title)
			p.Y.Min, p.Y.Max = 0, float64(r.Wanted)*barRoom
			p.Y.Tick.Marker = plot.TickerFunc(wholeNumbers)
			p.NominalX("pods that run", "volumes refused")
			p.Legend.Top, p.Legend.Left = true, true
			for style, size := range map[*text.Style]vg.Length{
				&p.Title.TextStyle: 11, &p.Legend.TextStyle: 9, &p.X.Tick.Label: 9, &p.Y.Tick.Label: 9,
			} {
				style.Font = font.From(sans, size)
			}
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
	labels, err := plotter.NewLabels(plotter.XYLabels{
		XYs: plotter.XYs{{X: 0, Y: values[0]}, {X: 1, Y: values[1]}}, Labels: []string{strconv.Itoa(r.Running), strconv.Itoa(r.Failed)},
	})
	if err != nil {
		return err
	}
	labels.Offset = vg.Point{X: bars.Offset, Y: vg.Points(2)}
	for i := range labels.TextStyle {
		labels.TextStyle[i].Font, labels.TextStyle[i].XAlign = font.From(sans, 10), text.XCenter
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
