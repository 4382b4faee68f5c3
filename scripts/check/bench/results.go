// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchfmt"
)

// results are the values of raw results: all runs, by the name of the benchmark without the number of processors, and
// by the unit.
type results map[string]map[string][]float64

// parse reads a file in the format that benchstat reads.
func parse(raw []byte, file string) results {
	all := results{}
	for reader := benchfmt.NewReader(bytes.NewReader(raw), file); reader.Scan(); {
		result, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue // a line that a log has torn
		}
		base, parts := result.Name.Parts()
		name := string(base)
		for _, part := range parts {
			if !bytes.HasPrefix(part, []byte("-")) {
				name += string(part)
			}
		}
		if all[name] == nil {
			all[name] = map[string][]float64{}
		}
		for _, value := range result.Values {
			all[name][value.Unit] = append(all[name][value.Unit], value.Value)
		}
	}
	return all
}

// spread is what the runs of a benchmark come to.
type spread struct{ lowest, median, highest float64 }

// spread returns that of a benchmark, with the median that benchstat has.
func (r results) spread(name, unit string) (spread, error) {
	values := slices.Sorted(slices.Values(r[name][unit]))
	n := len(values)
	if n == 0 {
		return spread{}, fmt.Errorf("no %s of %s", unit, name)
	}
	return spread{lowest: values[0], median: (values[(n-1)/2] + values[n/2]) / 2, highest: values[n-1]}, nil
}

// number has three digits, as the page has.
func number(v float64) string { return fmt.Sprintf("%.3g", v) }

// took is a time with a unit, of two digits: some are those of one run.
func took(seconds float64) string {
	for _, unit := range []string{" s", " ms", " µs"} {
		switch {
		case seconds >= 99.5:
			return fmt.Sprintf("%.0f", math.Round(seconds/10)*10) + unit
		case seconds >= 9.95:
			return fmt.Sprintf("%.0f", seconds) + unit
		case seconds >= 0.995:
			return fmt.Sprintf("%.1f", seconds) + unit
		}
		seconds *= 1000
	}
	return fmt.Sprintf("%.2g ns", seconds)
}
