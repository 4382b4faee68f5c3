package bench

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchproc"
	"golang.org/x/perf/benchunit"
)

// confidence is that of the intervals after ±. For benchstat's 95%, five runs are too few,
// and for this one four, so those figures have none.
const confidence = 0.9

// named puts names whose form is not ours to choose in the form key=value.
var named = []struct {
	from *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`^PerfScheduling/\w+/(\d+)Nodes_(\d+)Classes_`), "PerfScheduling/nodes=$1/classes=$2/kind="},
	{regexp.MustCompile(`^PerfScheduling/\w+/(\d+)Nodes_`), "PerfScheduling/nodes=$1/kind="},
	{regexp.MustCompile(`/CSIStorageCapacityV2=true`), "/scheduler=gate-on"},
	{regexp.MustCompile(`/CSIStorageCapacityV2=false`), "/scheduler=gate-off"},
	{regexp.MustCompile(`/(walk|index)(-\d+)?$`), "/by=$1$2"},
}

// parse reads results in the format that benchstat reads. Those of two processors cannot be
// compared, and are refused.
func parse(text []byte) ([]*benchfmt.Result, error) {
	var results []*benchfmt.Result
	reader := benchfmt.NewReader(bytes.NewReader(text), "results")
	for reader.Scan() {
		result, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue // a line that a log has torn
		}
		for _, n := range named {
			result.Name = n.from.ReplaceAll(result.Name, []byte(n.to))
		}
		results = append(results, result.Clone())
		if first, cpu := results[0].GetConfig("cpu"), result.GetConfig("cpu"); cpu != first {
			return nil, fmt.Errorf("results of two processors, %q (%s) and %q (%s): make bench measures all of a page again",
				first, results[0].GetConfig("run"), cpu, result.GetConfig("run"))
		}
	}
	return results, reader.Err()
}

// cell is a place for figures.
type cell struct {
	row          benchproc.Key
	column, unit string
}

// pivot has the figures of some results by the values of keys in the benchmarks' names.
type pivot struct {
	fields []*benchproc.Field
	rows   []benchproc.Key
	values map[cell][]float64
}

// pivot takes a filter and two projections as benchstat does.
func (r Report) pivot(filter, rows, column string) (*pivot, error) {
	f, err := benchproc.NewFilter(filter)
	if err != nil {
		return nil, err
	}
	var parser benchproc.ProjectionParser
	rowOf, err := parser.Parse(rows, f)
	if err != nil {
		return nil, err
	}
	columnOf, err := parser.Parse(column, f)
	if err != nil {
		return nil, err
	}
	p := &pivot{fields: rowOf.FlattenedFields(), values: map[cell][]float64{}}
	for _, result := range r.Results {
		if match, err := f.Match(result); err != nil {
			return nil, err
		} else if !match.All() {
			continue
		}
		row := rowOf.Project(result)
		if !slices.Contains(p.rows, row) {
			p.rows = append(p.rows, row)
		}
		for _, value := range result.Values {
			at := cell{row, columnOf.Project(result).StringValues(), value.Unit}
			p.values[at] = append(p.values[at], value.Value)
		}
	}
	benchproc.SortKeys(p.rows)
	return p, nil
}

// median is benchstat's summary of a cell, and false if it is empty.
func (p *pivot) median(at cell) (benchmath.Summary, bool) {
	values := p.values[at]
	if len(values) == 0 {
		return benchmath.Summary{}, false
	}
	return benchmath.AssumeNothing.Summary(benchmath.NewSample(values, &benchmath.DefaultThresholds), confidence), true
}

// Rows are the lines of a table in Markdown: the values of the keys in rows, then figures. A
// figure is the value of the column's key and a unit, such as "gate-on sec/op", or the ratio
// of two of them, such as "upstream/gate-on sec/op". One that no row has is an error: the
// report would compare with what was not measured.
func (r Report) Rows(filter, rows, column string, figures ...string) (string, error) {
	p, err := r.pivot(filter, rows, column)
	if err != nil {
		return "", err
	}
	var table strings.Builder
	found := map[string]bool{}
	for _, row := range p.rows {
		for _, field := range p.fields {
			fmt.Fprintf(&table, "| %s ", row.Get(field))
		}
		for _, figure := range figures {
			shown, ok := p.show(row, figure)
			found[figure] = found[figure] || ok
			fmt.Fprintf(&table, "| %s ", shown)
		}
		table.WriteString("|\n")
	}
	for _, figure := range figures {
		if !found[figure] {
			return "", fmt.Errorf("no result has %q of %s, which the report needs: make bench measures it", figure, filter)
		}
	}
	return table.String(), nil
}

// show shows one figure, and whether there is one.
func (p *pivot) show(row benchproc.Key, figure string) (string, bool) {
	column, unit, _ := strings.Cut(figure, " ")
	column, base, isRatio := strings.Cut(column, "/")
	at := cell{row, column, unit}
	median, ok := p.median(at)
	of, hasBase := p.median(cell{row, base, unit})
	if !ok || isRatio && !hasBase {
		return "–", false
	}
	if ratio := median.Center / of.Center; isRatio && ratio < 10 {
		return fmt.Sprintf("%.2f", ratio), true
	} else if isRatio {
		return fmt.Sprintf("%.0f", ratio), true
	}
	shown := fmt.Sprintf("%.3g", median.Center)
	switch kind, _, _ := strings.Cut(unit, "/"); {
	case strings.HasSuffix(kind, "sec"):
		shown = benchunit.Scale(median.Center, benchunit.Decimal) + "s"
	case strings.HasSuffix(kind, "B"):
		shown = benchunit.Scale(median.Center, benchunit.Binary) + "B"
	case median.Center >= 1000:
		shown = benchunit.Scale(median.Center, benchunit.Decimal)
	}
	if spread := median.PctRangeString(); spread != "∞" {
		shown += " ± " + spread
	}
	return shown, true
}
