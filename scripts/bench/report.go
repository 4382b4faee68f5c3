package bench

import (
	_ "embed"
	"fmt"
	"io"
	"text/template"
)

// Report is what the report says.
type Report struct {
	Samples Samples
	// Version is that of the release, Machine the one that measured.
	Version, Go, Machine string
	// Runs have the commands.
	Runs []Run
	// Plot and Raw are the names of the files beside the report.
	Plot, Raw string
}

//go:embed report.md.tmpl
var reportTemplate string

// Write writes the report in Markdown.
func (r Report) Write(w io.Writer) error {
	t, err := template.New("report").Parse(reportTemplate)
	if err != nil {
		return err
	}
	return t.Execute(w, r)
}

// Commands are the commands of the runs, in a folder of the project.
func (r Report) Commands() []string {
	var commands []string
	for _, run := range r.Runs {
		command := "go"
		for _, arg := range run.args() {
			command += " " + quote(arg)
		}
		commands = append(commands, command)
	}
	return commands
}

// quote makes an argument safe for a shell.
func quote(arg string) string {
	for _, c := range arg {
		if c == '$' || c == '|' || c == '(' {
			return "'" + arg + "'"
		}
	}
	return arg
}

const second = "sec/op"

// passName is the benchmark of a filter pass. The scheduler is upstream, gate-off or gate-on.
func passName(nodes, claims, updates int, scheduler string) string {
	return fmt.Sprintf("FindPodVolumesCapacity/nodes=%d/claims=%d/updates=%d/scheduler=%s", nodes, claims, updates, scheduler)
}

// Pass is a line of the table of filter passes.
type Pass struct {
	Nodes, Claims, Updates int
	// Upstream walks over all objects. GateOff and GateOn are the series.
	Upstream, GateOff, GateOn string
	// Faster is the ratio of Upstream and GateOn, PerNode the time and Allocations the
	// number of allocations with the gate on for one node.
	Faster, PerNode, Allocations string
}

// Passes are the lines of the table of filter passes.
func (r Report) Passes() []Pass {
	var passes []Pass
	for _, nodes := range []int{100, 1000, 5000, 15000} {
		for _, claims := range []int{1, 3} {
			passes = append(passes, r.pass(nodes, claims, 0))
		}
	}
	return append(passes, r.pass(5000, 1, 1000))
}

func (r Report) pass(nodes, claims, updates int) Pass {
	upstream, series := passName(nodes, claims, updates, "upstream"), passName(nodes, claims, updates, "gate-on")
	p := Pass{
		Nodes: nodes, Claims: claims, Updates: updates,
		Upstream: r.Samples.Show(upstream, second), GateOn: r.Samples.Show(series, second),
		GateOff: r.Samples.Show(passName(nodes, claims, updates, "gate-off"), second),
		Faster:  "–", PerNode: "–", Allocations: "–",
	}
	own, ok := r.Samples.Median(series, second)
	if !ok {
		return p
	}
	p.PerNode = fmt.Sprintf("%.1f µs", own*1e6/float64(nodes))
	if allocs, ok := r.Samples.Median(series, "allocs/op"); ok {
		p.Allocations = fmt.Sprintf("%.0f", allocs/float64(nodes))
	}
	if theirs, ok := r.Samples.Median(upstream, second); ok {
		p.Faster = fmt.Sprintf("%.0f", theirs/own)
	}
	return p
}

// Throughput is a line of the table of scheduler_perf.
type Throughput struct {
	Nodes                                           int
	Untracked, Unchecked, GateOff, Object, InFlight string
	// ObjectShare and InFlightShare are what the policies of the series reach of
	// Unchecked.
	ObjectShare, InFlightShare string
}

// Throughputs are the lines of the table of scheduler_perf.
func (r Report) Throughputs() []Throughput {
	const unit = "SchedulingThroughput/Average"
	var lines []Throughput
	for _, nodes := range []int{500, 5000} {
		name := func(kind string) string {
			return fmt.Sprintf("PerfScheduling/DynamicProvisioning/%dNodes_%s", nodes, kind)
		}
		object := fmt.Sprintf("PerfScheduling/DynamicProvisioningObject/%dNodes_object", nodes)
		lines = append(lines, Throughput{
			Nodes:         nodes,
			Untracked:     r.Samples.Show(name("untracked"), unit),
			Unchecked:     r.Samples.Show(name("unchecked"), unit),
			GateOff:       r.Samples.Show(name("gateoff"), unit),
			Object:        r.Samples.Show(object, unit),
			InFlight:      r.Samples.Show(name("gateon"), unit),
			ObjectShare:   r.share(object, name("unchecked"), unit),
			InFlightShare: r.share(name("gateon"), name("unchecked"), unit),
		})
	}
	return lines
}

// share returns what a reaches of b.
func (r Report) share(a, b, unit string) string {
	of, ok := r.Samples.Median(b, unit)
	if !ok {
		return "–"
	}
	reached, ok := r.Samples.Median(a, unit)
	if !ok {
		return "–"
	}
	return fmt.Sprintf("%.0f%%", 100*reached/of)
}

// Update shows a metric of storing a new version of an object.
func (r Report) Update(indexed bool, unit string) string {
	return r.Samples.Show(fmt.Sprintf("CapacityUpdate/index=%v", indexed), unit)
}
