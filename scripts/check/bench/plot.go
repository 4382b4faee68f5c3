package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// Plotted is the page that has the results of [Plot].
const Plotted = "scheduler"

// Plot draws the time of a filter pass over the number of nodes, as SVG.
func Plot(results []byte, file string) error {
	times := map[string]map[float64][]float64{} // by the line and the number of nodes
	for reader := benchfmt.NewReader(bytes.NewReader(results), file); reader.Scan(); {
		result, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue // a line that a log has torn
		}
		base, parts := result.Name.Parts()
		of := map[string]string{}
		for _, part := range parts {
			key, value, _ := strings.Cut(strings.TrimPrefix(string(part), "/"), "=")
			of[key] = value
		}
		nodes, err := strconv.ParseFloat(of["nodes"], 64)
		took, measured := result.Value("sec/op")
		if string(base) != "FindPodVolumesCapacity" || of["updates"] != "0" || err != nil || !measured {
			continue
		}
		line := fmt.Sprintf("%s, %s new volume(s)", of["scheduler"], of["claims"])
		if times[line] == nil {
			times[line] = map[float64][]float64{}
		}
		times[line][nodes] = append(times[line][nodes], took)
	}
	var lines []any
	for _, scheduler := range []string{"upstream", "gate-off", "gate-on"} {
		for _, claims := range []string{"1", "3"} {
			line := fmt.Sprintf("%s, %s new volume(s)", scheduler, claims)
			var points plotter.XYs
			for nodes, all := range times[line] {
				slices.Sort(all)
				points = append(points, plotter.XY{X: nodes, Y: all[len(all)/2]})
			}
			slices.SortFunc(points, func(a, b plotter.XY) int { return int(a.X - b.X) })
			if len(points) > 0 {
				lines = append(lines, line, points)
			}
		}
	}
	if len(lines) == 0 {
		return errors.New("no results of BenchmarkFindPodVolumesCapacity")
	}
	image := plot.New()
	image.Title.Text = "One filter pass over all nodes"
	image.X.Label.Text, image.Y.Label.Text = "nodes, and capacity objects", "seconds"
	image.X.Scale, image.Y.Scale = plot.LogScale{}, plot.LogScale{}
	image.X.Tick.Marker, image.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	image.Legend.Top, image.Legend.Left = true, true
	image.Add(plotter.NewGrid())
	if err := plotutil.AddLinePoints(image, lines...); err != nil {
		return err
	}
	svg, err := image.WriterTo(16*vg.Centimeter, 11*vg.Centimeter, "svg")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if _, err := svg.WriteTo(&b); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}
