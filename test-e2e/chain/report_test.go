package chain

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/test-e2e/measure"
)

// report is the table, which grows with each scenario of this run of TestChain.
type report struct {
	// file is the page, "" for none.
	file    string
	results map[string][]measure.Result
}

func key(s setting, v variant) string {
	return s.Name + "/" + v.scheduler() + "/" + v.provisioner.String()
}

func (r *report) add(s setting, v variant, of measure.Result) {
	r.results[key(s, v)] = append(r.results[key(s, v)], of)
}

func (r *report) write(t *testing.T) {
	t.Helper()
	if r.file == "" {
		return
	}
	// The table of the other part, which was measured before.
	second, err := os.ReadFile(os.Getenv("CHAIN_SECOND"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	must(t, os.WriteFile(r.file, append(r.page(), second...), 0o644))
}

const head = `# The whole chain: driver, provisioner, scheduler, kubelet

Written by ` + "`make bench SUITE=chain`" + `, in one go, on three nodes of one machine with two cores. The
reference driver and external-provisioner run on each node. Each pod has one volume, of 10 GiB
if nothing else is said. The driver has one storage class. A figure is the median of
%s, with the lowest and the highest one unless they are the same.

- *scheduler*: the patched kube-scheduler, with the policy named, or with the feature gate off.
- *provisioner*: ` + "`stock`" + ` is external-provisioner as released, ` + "`patched`" + ` publishes pools and
  confirms its reports.
- *failed*: volumes that were asked for where there was no room, new ones and those that had
  to be rebuilt.
- *decided*, *running*: seconds from the first pod until the last one had a node, and until
  it ran. Where pods come and go, they say nothing. In a drain, the first pod is the first
  that comes instead of one on the drained node.
- *wait*: the longest time in seconds that a pod had no node while a node had room for it.
  Where sizes differ, the number of places does not say that.
- *left*: pods that never ran. With the gate off, nobody looks whether there is room for a
  volume that has to be rebuilt.
- *lost*: pods that did not find their data after they were moved.
- *writes*, *calls*: how often capacity was written, and GetCapacity called, for each new
  volume.
- *confirmed*: seconds from a new PersistentVolume to the report that reflects it, the
  median of all volumes.

`

// column is what the table shows of a result.
type column struct {
	name, format string
	value        func(measure.Result) float64
	// says is whether the figure says something in a setting; nil: always.
	says func(setting) bool
}

var columns = []column{
	{"failed", "%.0f", func(r measure.Result) float64 { return float64(r.Failed) }, nil},
	{"decided", "%.1f", func(r measure.Result) float64 { return r.Decided }, func(s setting) bool { return s.Churn == 0 }},
	{"running", "%.1f", func(r measure.Result) float64 { return r.Running }, func(s setting) bool { return s.Churn == 0 }},
	{"wait", "%.1f", func(r measure.Result) float64 { return r.Wait }, func(s setting) bool { return len(s.Sizes) == 0 }},
	{"left", "%.0f", func(r measure.Result) float64 { return float64(r.Left) }, nil},
	{"lost", "%.0f", func(r measure.Result) float64 { return float64(r.Lost) }, func(s setting) bool { return s.Drain }},
	{"writes", "%.1f", func(r measure.Result) float64 { return r.Writes }, func(s setting) bool { return !s.Drain }},
	{"calls", "%.1f", func(r measure.Result) float64 { return r.Calls }, func(s setting) bool { return !s.Drain }},
	{"confirmed", "%.1f", func(r measure.Result) float64 { return r.Confirmed }, func(s setting) bool { return !s.Drain }},
}

// page is the table of all settings that have results.
func (r *report) page() []byte {
	var b bytes.Buffer
	runs := 0
	for _, results := range r.results {
		runs = max(runs, len(results))
	}
	fmt.Fprintf(&b, head, map[bool]string{true: "one run", false: fmt.Sprintf("%d runs", runs)}[runs == 1])
	b.WriteString("| scenario | scheduler | provisioner |")
	for _, c := range columns {
		b.WriteString(" " + c.name + " |")
	}
	b.WriteString("\n| --- | --- | --- |" + strings.Repeat(" ---: |", len(columns)) + "\n")
	for _, s := range settings {
		for _, v := range s.variants() {
			results, ok := r.results[key(s, v)]
			if !ok {
				continue
			}
			fmt.Fprintf(&b, "| %s | %s | %s |", s.Name, v.scheduler(), v.provisioner)
			for _, c := range columns {
				b.WriteString(" " + c.cell(s, results) + " |")
			}
			b.WriteString("\n")
		}
	}
	return b.Bytes()
}

// cell is the median of some results, with their range.
func (c column) cell(s setting, results []measure.Result) string {
	if c.says != nil && !c.says(s) {
		return ""
	}
	var values []float64
	for _, r := range results {
		if v := c.value(r); v >= 0 { // else unknown
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return ""
	}
	slices.Sort(values)
	text := func(i int) string { return fmt.Sprintf(c.format, values[i]) }
	low, median, high := text(0), text(len(values)/2), text(len(values)-1)
	if low == high {
		return median
	}
	return fmt.Sprintf("%s (%s to %s)", median, low, high)
}

func TestPage(t *testing.T) {
	r := report{results: map[string][]measure.Result{}}
	off, patched := settings[1].variants()[0], settings[1].variants()[3]
	for i := range 5 {
		r.add(settings[1], off, measure.Result{Failed: i, Decided: 1.5, Calls: -1, Confirmed: -1})
		r.add(settings[1], patched, measure.Result{Decided: float64(5 - i), Writes: 1.2, Calls: 2, Confirmed: 0.5})
	}
	page := string(r.page())
	for _, want := range []string{
		"is the median of\n5 runs,",
		"| tight | gate off | stock | 2 (0 to 4) | 1.5 | 0.0 | 0.0 | 0 |  | 0.0 |  |  |\n",
		"| tight | InFlight | patched | 0 | 3.0 (1.0 to 5.0) | 0.0 | 0.0 | 0 |  | 1.2 | 2.0 | 0.5 |\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	if strings.Contains(page, "| plenty |") {
		t.Error("there is a row without a result")
	}
}
