package verbs

import (
	"regexp"
	"slices"
	"testing"

	"capacityv2.internal/scripts/prove"
	"capacityv2.internal/scripts/specs"
	"capacityv2.internal/scripts/toolchain"
)

// sampleRun is a run in which A and B of ours have to fail with the gate off, and C is
// not run there.
func sampleRun(target string, o E2EOptions) *specRun {
	e := prove.Expectations{Suites: []prove.Suite{{Groups: []prove.Group{
		{Tests: []string{"A", "B"}, GateOff: prove.Fails, Stock: prove.Fails},
		{Tests: []string{"C"}, GateOff: prove.NotRun, Stock: prove.Fails, Why: "why"},
	}}}}
	return &specRun{
		app: &App{}, target: target, options: o, list: e, expected: e.Suites[0],
		all: []string{"A [Ours]", "B [Ours]", "C [Ours]", "quick", "slow"},
		selection: specs.Selection{Groups: []specs.Group{
			{Name: "ours", Ours: true, Specs: regexp.MustCompile(`\[Ours\]`), Quick: regexp.MustCompile(".")},
			{Name: "upstream", Specs: regexp.MustCompile("quick|slow"), Quick: regexp.MustCompile("quick")},
		}},
	}
}

func TestChosen(t *testing.T) {
	for name, c := range map[string]struct {
		target   string
		options  E2EOptions
		ours     []string
		upstream []string
	}{
		"gate on":    {gateOn, E2EOptions{}, []string{"A [Ours]", "B [Ours]", "C [Ours]"}, []string{"quick"}},
		"gate off":   {gateOff, E2EOptions{}, []string{"A [Ours]", "B [Ours]"}, []string{"quick"}},
		"stock, all": {stock, E2EOptions{All: true}, []string{"A [Ours]", "B [Ours]", "C [Ours]"}, []string{"quick", "slow"}},
		"slow":       {gateOn, E2EOptions{Focus: regexp.MustCompile("slow")}, nil, []string{"slow"}},
	} {
		r := sampleRun(c.target, c.options)
		if got := r.chosen(true); !slices.Equal(got, c.ours) {
			t.Errorf("%s: ours: %q, want %q", name, got, c.ours)
		}
		if got := r.chosen(false); !slices.Equal(got, c.upstream) {
			t.Errorf("%s: upstream's: %q, want %q", name, got, c.upstream)
		}
	}
}

func TestCompare(t *testing.T) {
	for name, c := range map[string]struct {
		focus   *regexp.Regexp
		results []specs.Result
		want    []string
	}{
		"as expected":    {nil, []specs.Result{{Name: "A [Ours]", Outcome: toolchain.Failed}, {Name: "B [Ours]", Outcome: toolchain.Failed}}, nil},
		"one passes":     {nil, []specs.Result{{Name: "A [Ours]", Outcome: toolchain.Passed}, {Name: "B [Ours]", Outcome: toolchain.Failed}}, []string{"A passes, expected: fails"}},
		"one is skipped": {regexp.MustCompile("A"), []specs.Result{{Name: "A [Ours]", Outcome: toolchain.Skipped}}, []string{"A is skipped, expected: fails"}},
		"focus on one":   {regexp.MustCompile("A"), []specs.Result{{Name: "A [Ours]", Outcome: toolchain.Failed}}, nil},
		"one is missing": {nil, []specs.Result{{Name: "A [Ours]", Outcome: toolchain.Failed}}, []string{"B did not run"}},
	} {
		r := sampleRun(gateOff, E2EOptions{Focus: c.focus})
		if got := r.compare(r.chosen(true), c.results); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
