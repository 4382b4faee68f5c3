// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/check/failswithout"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
)

// sampleRun is a run in which A and B of ours have to fail with the gate off, and C is
// not run there.
func sampleRun(target string, all bool, only *regexp.Regexp) *Run {
	return &Run{
		Options: Options{Target: target, All: all, Only: only},
		Without: failswithout.Expectations{Suites: []failswithout.Suite{{Groups: []failswithout.Group{
			{Tests: []string{"A", "B"}, GateOff: failswithout.Fails, Stock: failswithout.Fails},
			{Tests: []string{"C"}, GateOff: failswithout.NotRun, Stock: failswithout.Fails, Reason: "why"},
		}}}},
		all: []string{"A [Ours]", "B [Ours]", "C [Ours]", "quick", "slow"},
		selection: Selection{Groups: []Group{
			{Name: "ours", Ours: true, Specs: regexp.MustCompile(`\[Ours\]`), Quick: regexp.MustCompile(".")},
			{Name: "upstream", Specs: regexp.MustCompile("quick|slow"), Quick: regexp.MustCompile("quick")},
		}},
	}
}

func TestChosen(t *testing.T) {
	for name, c := range map[string]struct {
		target   string
		all      bool
		only     *regexp.Regexp
		ours     []string
		upstream []string
	}{
		"gate on":    {GateOn, false, nil, []string{"A [Ours]", "B [Ours]", "C [Ours]"}, []string{"quick"}},
		"gate off":   {GateOff, false, nil, []string{"A [Ours]", "B [Ours]"}, []string{"quick"}},
		"stock, all": {Stock, true, nil, []string{"A [Ours]", "B [Ours]", "C [Ours]"}, []string{"quick", "slow"}},
		"slow":       {GateOn, false, regexp.MustCompile("slow"), nil, []string{"slow"}},
	} {
		r := sampleRun(c.target, c.all, c.only)
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
		only    *regexp.Regexp
		results []Result
		want    []string
	}{
		"as expected":    {nil, []Result{{Name: "A [Ours]", Outcome: toolchain.Failed}, {Name: "B [Ours]", Outcome: toolchain.Failed}}, nil},
		"one passes":     {nil, []Result{{Name: "A [Ours]", Outcome: toolchain.Passed}, {Name: "B [Ours]", Outcome: toolchain.Failed}}, []string{"A passes, expected: fails"}},
		"one is skipped": {regexp.MustCompile("A"), []Result{{Name: "A [Ours]", Outcome: toolchain.Skipped}}, []string{"A is skipped, expected: fails"}},
		"only one":       {regexp.MustCompile("A"), []Result{{Name: "A [Ours]", Outcome: toolchain.Failed}}, nil},
		"one is missing": {nil, []Result{{Name: "A [Ours]", Outcome: toolchain.Failed}}, []string{"B did not run"}},
	} {
		r := sampleRun(GateOff, false, c.only)
		if got := r.compare(r.chosen(true), c.results); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	// One that is not quick, and so was not chosen.
	slow := sampleRun(GateOff, false, nil)
	slow.selection.Groups[0].Quick = regexp.MustCompile("A")
	if got := slow.compare(slow.chosen(true), []Result{{Name: "A [Ours]", Outcome: toolchain.Failed}}); len(got) > 0 {
		t.Errorf("B is slow: got %q, want nothing", got)
	}
	// Where all are to run, one that was not chosen is missing.
	slow.All = true
	if got, want := slow.compare([]string{"A [Ours]"}, []Result{{Name: "A [Ours]", Outcome: toolchain.Failed}}), []string{"B did not run"}; !slices.Equal(got, want) {
		t.Errorf("B was not chosen: got %q, want %q", got, want)
	}
	// One that the file has, and the program has not any more.
	r := sampleRun(GateOff, false, nil)
	r.all = r.all[:1]
	if got, want := r.compare(r.chosen(true), []Result{{Name: "A [Ours]", Outcome: toolchain.Failed}}), []string{"B did not run"}; !slices.Equal(got, want) {
		t.Errorf("B is gone: got %q, want %q", got, want)
	}
}

// TestRun has a ginkgo that leaves a report in which A fails and B passes. It would not do so through a proxy of the user.
func TestRun(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "x")
	for target, want := range map[string]string{GateOn: "A [Ours] failed", GateOff: "B passes, expected: fails"} {
		r := sampleRun(target, false, regexp.MustCompile("A|B"))
		r.Work = t.TempDir()
		r.Ginkgo = filepath.Join(r.Work, "ginkgo")
		const script = `#!/bin/sh
[ "$HTTPS_PROXY" = x ] && [ "$NO_PROXY" = "*" ] || exit 2
for a; do case $a in --report-dir=*) d=${a#*=} ;; esac; done
mkdir -p "$d" && cat >"$d/junit_01.xml" <<end
<testsuites><testsuite><testcase name="[It] A [Ours]" status="failed"/><testcase name="[It] B [Ours]" status="passed"/></testsuite></testsuites>
end
exit 1
`
		if err := os.WriteFile(r.Ginkgo, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		err := run.NewReporter(t.Output(), "e2e", t.TempDir()).Run(t.Context(), run.Task{Name: "ours", Do: func(ctx context.Context, s *run.Step) error { return r.run(ctx, "ours", true, s) }})
		if err != nil {
			t.Fatalf("%s: %v", target, err)
		}
		if err := r.Check(); !run.IsRefusal(err) || !strings.Contains(err.Error(), "1 tests did not behave as expected, target "+target+":\n    "+want+"\n") {
			t.Errorf("%s: error %v, want %q", target, err, want)
		}
	}
}
