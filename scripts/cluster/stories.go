package cluster

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
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
	Samples     []struct {
		Seconds         float64
		Running, Failed int
	}
}

// storyTime is the time in seconds that a story may take.
const storyTime = 30

// legendRoom is how much higher a picture is than its lines.
const legendRoom = 1.7

// The pictures stand beside each other.
const (
	storyWidth  = 12 * vg.Centimeter
	storyHeight = 8 * vg.Centimeter
)

var colors = map[string]color.Color{
	"before": color.RGBA{R: 200, G: 60, B: 40, A: 255},
	"after":  color.RGBA{R: 30, G: 90, B: 180, A: 255},
}

// drawStories reads the results and draws a picture for each story: how many pods run, and how
// many volumes were asked for where there was no room, over time.
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
	return os.WriteFile(out, svg.Bytes(), 0o644)
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
			p.X.Label.Text, p.X.Min, p.X.Max = "seconds", 0, storyTime
			p.Y.Min, p.Y.Max = 0, float64(r.Wanted)*legendRoom
			p.Y.Tick.Marker = plot.TickerFunc(wholeNumbers)
			p.Legend.Top, p.Legend.Left, p.Legend.TextStyle.Font.Size = true, true, vg.Points(9)
			p.Title.TextStyle.Font.Size, p.X.Label.TextStyle.Font.Size = vg.Points(11), vg.Points(9)
			p.Add(plotter.NewGrid())
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
	running, failed := plotter.XYs{{}}, plotter.XYs{{}}
	for _, s := range r.Samples {
		running = append(running, plotter.XY{X: s.Seconds, Y: float64(s.Running)})
		failed = append(failed, plotter.XY{X: s.Seconds, Y: float64(s.Failed)})
	}
	// What stays as it is goes on to the end of the picture.
	for _, line := range []*plotter.XYs{&running, &failed} {
		*line = append(*line, plotter.XY{X: storyTime, Y: (*line)[len(*line)-1].Y})
	}
	for _, line := range []struct {
		name   string
		points plotter.XYs
		dashes []vg.Length
	}{{"running", running, nil}, {"failed provisions", failed, []vg.Length{vg.Points(4), vg.Points(3)}}} {
		l, err := plotter.NewLine(line.points)
		if err != nil {
			return err
		}
		l.StepStyle, l.Color, l.Width, l.Dashes = plotter.PostStep, colors[r.Side], vg.Points(1.5), line.dashes
		p.Add(l)
		p.Legend.Add(r.Side+": "+line.name, l)
		for _, at := range line.points {
			p.Y.Max = max(p.Y.Max, at.Y*legendRoom)
		}
	}
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
