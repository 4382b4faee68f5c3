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
BenchmarkDrain/objects=zone/capacity=constant/room=tight/delay=0s/policy=Object-2 	       1	5427282713 ns/op	        30.01 drain-s	         0 failed-provisions	         99 pods-left	         0.033 pods/s
BenchmarkDrain/objects=node/capacity=changing/room=tight/delay=10s/policy=upstream-2 	       1	5427282713 ns/op	        30.01 drain-s	         261.0 failed-provisions	         20.00 pods-left	         2.623 pods/s
BenchmarkDrain/objects=node/capacity=changing/room=tight/delay=1s/policy=InFlight-2 	       1	5427282713 ns/op	        3.045 drain-s	         0 failed-provisions	         0 pods-left	         32.84 pods/s
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
		"| 500 | 80 (once) | not run | not run | – | 76 (once) | 95% |",
		`| node | changing | tight | 1s | InFlight | 0 | 32.8 | 3.04 s | 0 |
| node | changing | tight | 10s | upstream | 261 | 2.62 | – | 20 |
| zone | constant | tight | – | Object | 0 | 0.033 | – | 99 |`,
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
