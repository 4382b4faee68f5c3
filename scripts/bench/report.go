package bench

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"golang.org/x/perf/benchfmt"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// Report is a page with what some of the runs have measured.
type Report struct {
	// Raw is the file of the results. The page is beside it, and its template has the same name.
	Raw  string
	Runs []Run
	// Results are read from Raw.
	Results []*benchfmt.Result
}

//go:embed *.md.tmpl
var templates embed.FS

// Write reads Raw and writes the page in Markdown, and a plot where there is something to plot. It returns
// the names of the files.
func (r Report) Write() ([]string, error) {
	text, err := os.ReadFile(r.Raw)
	if err != nil {
		return nil, err
	}
	if r.Results, err = parse(text); err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(r.Raw, filepath.Ext(r.Raw))
	t, err := template.ParseFS(templates, filepath.Base(name)+".md.tmpl")
	if err != nil {
		return nil, err
	}
	var page, plot bytes.Buffer
	if err := t.Execute(&page, r); err != nil {
		return nil, err
	}
	files := []string{name + ".md"}
	if err := os.WriteFile(files[0], page.Bytes(), 0o644); err != nil || !bytes.Contains(page.Bytes(), []byte(".svg)")) {
		return files, err
	}
	files = append(files, name+".svg")
	return files, errors.Join(r.plot(&plot), os.WriteFile(files[1], plot.Bytes(), 0o644))
}

// Measured is what has measured what, in a few words.
func (r Report) Measured() string {
	first := r.Results[0]
	return fmt.Sprintf("%s, %s, %s, %s cores", first.GetConfig("version"), first.GetConfig("go"), first.GetConfig("cpu"), first.GetConfig("cores"))
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
