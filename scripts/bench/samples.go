package bench

import (
	"bytes"
	"fmt"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchunit"
)

// Samples are results by the name of the benchmark, without that of the machine,
// and by unit.
type Samples map[string]map[string][]float64

// Parse reads results in the format that benchstat reads. Units are those of
// benchstat: sec/op for ns/op. It also returns the processor.
func Parse(results []byte) (Samples, string, error) {
	samples, cpu := Samples{}, ""
	reader := benchfmt.NewReader(bytes.NewReader(results), "results")
	for reader.Scan() {
		result, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue // unit metadata, or a line that is no result
		}
		cpu = result.GetConfig("cpu")
		base, parts := result.Name.Parts()
		name := string(base)
		for _, part := range parts {
			if part[0] == '/' {
				name += string(part)
			}
		}
		if samples[name] == nil {
			samples[name] = map[string][]float64{}
		}
		for _, value := range result.Values {
			samples[name][value.Unit] = append(samples[name][value.Unit], value.Value)
		}
	}
	return samples, cpu, reader.Err()
}

// Median returns the middle of the values, and false if there are none.
func (s Samples) Median(name, unit string) (float64, bool) {
	values := s[name][unit]
	if len(values) == 0 {
		return 0, false
	}
	return s.summary(values).Center, true
}

// Show returns the median with its spread, as benchstat does.
func (s Samples) Show(name, unit string) string {
	values := s[name][unit]
	if len(values) == 0 {
		return "not run"
	}
	summary := s.summary(values)
	shown := fmt.Sprintf("%.3g", summary.Center)
	switch {
	case unit == second:
		shown = benchunit.Scale(summary.Center, benchunit.ClassOf(unit)) + "s"
	case strings.HasPrefix(unit, "stored-B/"):
		shown = benchunit.Scale(summary.Center, benchunit.ClassOf(unit)) + "B"
	}
	if len(values) == 1 {
		return shown + " (once)"
	}
	return fmt.Sprintf("%s ± %s", shown, spread(values, summary.Center))
}

// spread returns the largest distance from the center. Confidence intervals, as
// benchstat shows them, need more runs than a pass of seconds allows.
func spread(values []float64, center float64) string {
	var largest float64
	for _, value := range values {
		largest = max(largest, value-center, center-value)
	}
	if center == 0 {
		return "0%"
	}
	return fmt.Sprintf("%.0f%%", 100*largest/center)
}

func (s Samples) summary(values []float64) benchmath.Summary {
	return benchmath.AssumeNothing.Summary(benchmath.NewSample(values, &benchmath.DefaultThresholds), 0.95)
}
