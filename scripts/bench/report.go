package bench

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/template"

	"golang.org/x/perf/benchfmt"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// Report is what the report says.
type Report struct {
	// Raw is the file of the results. The report is beside it.
	Raw  string
	Runs []Run
	// Version is that of the release.
	Version string
	// Results are read from Raw.
	Results []*benchfmt.Result
}

//go:embed report.md.tmpl
var reportTemplate string

// Write reads Raw and writes the report, in Markdown and with a plot. It returns the names of
// the files.
func (r Report) Write() ([]string, error) {
	text, err := os.ReadFile(r.Raw)
	if err != nil {
		return nil, err
	}
	if r.Results, err = parse(text); err != nil {
		return nil, err
	}
	t, err := template.New("report").Parse(reportTemplate)
	if err != nil {
		return nil, err
	}
	var page, plot bytes.Buffer
	if err := errors.Join(t.Execute(&page, r), r.plot(&plot)); err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(r.Raw, filepath.Ext(r.Raw))
	return []string{name + ".md", name + ".svg"}, errors.Join(
		os.WriteFile(name+".md", page.Bytes(), 0o644), os.WriteFile(name+".svg", plot.Bytes(), 0o644))
}

// Machine is what has measured, in a few words. The report is written where the benchmarks ran.
func (r Report) Machine() string {
	return fmt.Sprintf("%s, %s, %d cores", runtime.Version(), r.Results[0].GetConfig("cpu"), runtime.NumCPU())
}

// Commands are the commands of the runs.
func (r Report) Commands() []string {
	var commands []string
	for _, run := range r.Runs {
		command := "go"
		for _, arg := range run.args() {
			if strings.ContainsAny(arg, "$|(") {
				arg = "'" + arg + "'"
			}
			command += " " + arg
		}
		commands = append(commands, command)
	}
	return commands
}

// plot draws the time of a filter pass over the number of nodes, as SVG.
func (r Report) plot(w io.Writer) error {
	p, err := r.pivot(".name:FindPodVolumesCapacity /updates:0", "/nodes@num", "/scheduler /claims")
	if err != nil {
		return err
	}
	var lines []any
	for _, scheduler := range []string{"upstream", "gate-off", "gate-on"} {
		for _, claims := range []string{"1", "3"} {
			var points plotter.XYs
			for _, row := range p.rows {
				if median, ok := p.median(cell{row, scheduler + " " + claims, "sec/op"}); ok {
					var nodes float64
					if _, err := fmt.Sscan(row.StringValues(), &nodes); err != nil {
						return err
					}
					points = append(points, plotter.XY{X: nodes, Y: median.Center})
				}
			}
			if len(points) > 0 {
				lines = append(lines, fmt.Sprintf("%s, %s new volume(s)", scheduler, claims), points)
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
	_, err = svg.WriteTo(w)
	return err
}
