package bench

import (
	"bytes"
	"strings"
	"testing"
)

// output is what go test prints, with the noise of servers in it.
const output = `goos: linux
cpu: Some Processor
I1121 14:11:36.321705    1928 etcd.go:115] "starting etcd"
BenchmarkFindPodVolumesCapacity/nodes=100/claims=1/updates=0/CSIStorageCapacityV2=false-2         	       1	  20000000 ns/op	  632992 B/op	   19014 allocs/op
BenchmarkFindPodVolumesCapacity/nodes=100/claims=1/updates=0/CSIStorageCapacityV2=true-2         	       37	  400000 ns/op	  632992 B/op	   1000 allocs/op
BenchmarkFindPodVolumesCapacity/nodes=100/claims=1/updates=0/CSIStorageCapacityV2=true-2         	       37	  500000 ns/op	  632992 B/op	   1000 allocs/op
BenchmarkFindPodVolumesCapacity/nodes=100/claims=1/updates=0/CSIStorageCapacityV2=true-2         	       37	  700000 ns/op	  632992 B/op	   1000 allocs/op
BenchmarkPerfScheduling/DynamicProvisioning/500Nodes_untracked
BenchmarkPerfScheduling/DynamicProvisioning/500Nodes_untracked-2            	       1	        37.57 SchedulingDuration/Duration	        80.00 SchedulingThroughput/Average
BenchmarkPerfScheduling/DynamicProvisioning/500Nodes_gateon-2            	       1	        37.57 SchedulingDuration/Duration	        76.00 SchedulingThroughput/Average
PASS
`

func TestReport(t *testing.T) {
	results := bytes.Join(resultLine.FindAll([]byte(output), -1), []byte("\n"))
	if bytes.Contains(results, []byte("etcd")) {
		t.Errorf("results have lines of a log:\n%s", results)
	}
	samples, cpu, err := Parse(results)
	if err != nil {
		t.Fatal(err)
	}
	if cpu != "Some Processor" {
		t.Errorf("processor %q", cpu)
	}
	report := Report{Samples: samples, Version: "v1", Go: "go1", Machine: cpu, Runs: Runs("tree", "root"), Plot: "p.svg", Raw: "r.txt"}
	var text, plot bytes.Buffer
	if err := report.Write(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| 100 | 1 | 0 | 20.00ms (once) | 500.0µs ± 40% | 40 | 5.0 µs | 10 |",
		"| 5000 | 3 | 0 | not run | not run | – | – | – |",
		"| 500 | 80 (once) | not run | 76 (once) | 95% |",
		"go test -tags ",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, text.String())
		}
	}
	if err := report.WritePlot(&plot); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(plot.String(), "<svg") {
		t.Errorf("the plot is no SVG:\n%.200s", plot.String())
	}
}

func TestPlotWithoutResults(t *testing.T) {
	if err := (Report{Samples: Samples{}}).WritePlot(&bytes.Buffer{}); err == nil {
		t.Error("a plot of nothing, want an error")
	}
}
