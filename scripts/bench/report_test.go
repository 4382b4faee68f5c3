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
BenchmarkFindPodVolumesCapacity/nodes=100/claims=1/updates=0/scheduler=upstream-2         	       1	  20000000 ns/op	  632992 B/op	   19014 allocs/op
BenchmarkFindPodVolumesCapacity/nodes=100/claims=1/updates=0/scheduler=gate-on-2         	       37	  400000 ns/op	  632992 B/op	   1000 allocs/op
BenchmarkFindPodVolumesCapacity/nodes=100/claims=1/updates=0/scheduler=gate-on-2         	       37	  500000 ns/op	  632992 B/op	   1000 allocs/op
BenchmarkFindPodVolumesCapacity/nodes=100/claims=1/updates=0/scheduler=gate-on-2         	       37	  700000 ns/op	  632992 B/op	   1000 allocs/op
BenchmarkPerfScheduling/DynamicProvisioning/500Nodes_untracked
BenchmarkPerfScheduling/DynamicProvisioning/500Nodes_untracked-2            	       1	        37.57 SchedulingDuration/Duration	        80.00 SchedulingThroughput/Average
BenchmarkPerfScheduling/DynamicProvisioning/500Nodes_unchecked-2            	       1	        37.57 SchedulingDuration/Duration	        78.00 SchedulingThroughput/Average
BenchmarkPerfScheduling/DynamicProvisioning/500Nodes_gateon-2            	       1	        37.57 SchedulingDuration/Duration	        76.00 SchedulingThroughput/Average
BenchmarkDrain/storage=node/capacity=changing/room=plenty/delay=1s/policy=upstream-2 	       1	5427282713 ns/op	        2.000 drain-s	         0 failed-provisions	         0 pods-left	         40.00 pods/s
BenchmarkDrain/storage=node/capacity=changing/room=plenty/delay=1s/policy=InFlight-2 	       1	5427282713 ns/op	        2.050 drain-s	         0 failed-provisions	         0 pods-left	         39.00 pods/s
BenchmarkDrain/storage=pools/capacity=changing/room=tight/delay=1s/policy=upstream-2 	       1	5427282713 ns/op	        20.01 drain-s	         261.0 failed-provisions	         20.00 pods-left	         2.623 pods/s
BenchmarkDrain/storage=pools/capacity=changing/room=tight/delay=0s/policy=confirmed-2 	       1	5427282713 ns/op	        2.000 drain-s	         0 failed-provisions	         0 pods-left	         40.00 pods/s
BenchmarkDrain/storage=pools/capacity=changing/room=tight/delay=1s/policy=confirmed-2 	       1	5427282713 ns/op	        3.000 drain-s	         0 failed-provisions	         0 pods-left	         32.84 pods/s
BenchmarkChurn/kills=true/policy=InFlight-2         	       1	131758703305 ns/op	         0 failed-provisions	         0 pods-left	        89.23 wait-s
BenchmarkWorstCases/claims=64/pools=256/objects=1/classes=1/CSIStorageCapacityV2=true-2 	       1	 40000 ns/op	 20000 check-ns/op	   0 B/op	 0 allocs/op
BenchmarkCapacityLookup/topology=shared_value/nodes=5000/classes=1/index-2 	 1	 400 ns/op
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
		"| 100 | 1 | 0 | 20.00ms (once) | not run | 500.0µs ± 40% | 40 | 5.0 µs | 10 |",
		"| 5000 | 3 | 0 | not run | not run | not run | – | – | – |",
		"| 500 | 80 (once) | 78 (once) | not run | not run | – | 76 (once) | 97% |",
		"| node | changing | 1s | 40 | not run | – | 39 | 98% | not run | – |",
		"| pools | changing | 1s | 261 failed | 20 left | – | not run | – | – |",
		"| 0 failed | 3 s | 1.5 |",
		"| InFlight | twice | 0 | 89.2 | 0 |",
		"| 64 | 256 | 1 | 1 | not run | 40.00µs (once) | 20 µs | 0.2 s |",
		"| the same, and one that all nodes have | 5000 | 1 | not run | 400.0ns (once) |",
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

func TestResults(t *testing.T) {
	runs := []Run{{Name: "first"}, {Name: "second"}, {Name: "not run"}}
	results := ReadResults(Results{"first": []byte("cpu: a\nBenchmarkX-2 1 1 ns/op\n"), "second": []byte("cpu: a\nBenchmarkY-2 1 1 ns/op\n")}.Text(runs))
	results["second"] = []byte("cpu: a\nBenchmarkY-2 1 2 ns/op\n")
	samples, _, err := Parse(results.Text(runs))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"X": 1e-9, "Y": 2e-9} {
		if got, ok := samples.Median(name, second); !ok || got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
