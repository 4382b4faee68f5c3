package bench

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// output is what go test prints, with the noise of servers in it.
const output = `goos: linux
cpu: Some Processor
I1121 14:11:36.321705    1928 etcd.go:115] "starting etcd"
BenchmarkFindPodVolumesCapacity/nodes=1000/claims=1/updates=0/scheduler=gate-on-2         	       37	  800000 ns/op	  632992 B/op	   1000 allocs/op
BenchmarkFindPodVolumesCapacity/nodes=100/claims=1/updates=0/scheduler=upstream-2         	       1	  20000000 ns/op	  632992 B/op	   19014 allocs/op
BenchmarkFindPodVolumesCapacity/nodes=100/claims=1/updates=0/scheduler=gate-on-2         	       37	  400000 ns/op	  632992 B/op	   1000 allocs/op
BenchmarkFindPodVolumesCapacity/nodes=100/claims=1/updates=0/scheduler=gate-on-2         	       37	  500000 ns/op	  632992 B/op	   1000 allocs/op
BenchmarkFindPodVolumesCapacity/nodes=100/claims=1/updates=0/scheduler=gate-on-2         	       37	  500000 ns/op	  632992 B/op	   1000 allocs/op
BenchmarkFindPodVolumesCapacity/nodes=100/claims=1/updates=0/scheduler=gate-on-2         	       37	  500000 ns/op	  632992 B/op	   1000 allocs/op
BenchmarkFindPodVolumesCapacity/nodes=100/claims=1/updates=0/scheduler=gate-on-2         	       37	  700000 ns/op	  632992 B/op	   1000 allocs/op
BenchmarkPerfScheduling/DynamicProvisioning/500Nodes_unchecked
BenchmarkPerfScheduling/DynamicProvisioning/500Nodes_unchecked-2            	       1	        37.57 SchedulingDuration/Duration	        78.00 SchedulingThroughput/Average
BenchmarkPerfScheduling/DynamicProvisioningObject/500Nodes_object-2            	       1	        37.57 SchedulingDuration/Duration	        39.00 SchedulingThroughput/Average
BenchmarkPerfScheduling/ManyObjects/500Nodes_50Classes_gateon-2            	       1	 25000 objects	        26.00 SchedulingThroughput/Average	 3.50 scheduler_scheduling_algorithm_duration_ms/Perc50
BenchmarkWorstCases/claims=64/pools=256/objects=1/classes=1/CSIStorageCapacityV2=true-2 	       1	 40000 ns/op	 20000 check-ns/op	   0 B/op	 0 allocs/op
BenchmarkCapacityLookup/topology=shared_value/nodes=5000/classes=1/index-2 	 1	 400 ns/op
BenchmarkCapacityUpdate/index=false-2 	 2252528	       496.5 ns/op	       133.5 stored-B/object	      56 B/op	       3 allocs/op
PASS
`

// TestRows reads what is left of the output of go test, and compares it.
func TestRows(t *testing.T) {
	lines := bytes.Join(resultLine.FindAll([]byte(output), -1), []byte("\n"))
	if bytes.Contains(lines, []byte("etcd")) {
		t.Errorf("results have lines of a log:\n%s", lines)
	}
	results, err := parse(lines)
	if err != nil {
		t.Fatal(err)
	}
	const passes, passRows = ".name:FindPodVolumesCapacity", "/nodes@num /updates"
	for _, tc := range []struct {
		name, filter, rows, column string
		figures                    []string
		want, err                  string
	}{
		{"medians, ratio and no baseline", passes, passRows, "/scheduler", []string{"upstream sec/op", "gate-on sec/op", "upstream/gate-on sec/op", "gate-on allocs/op"},
			"| 100 | 0 | 20.00ms | 500.0µs ± 40% | 40 | 1.000k ± 0% |\n| 1000 | 0 | – | 800.0µs | – | 1.000k |\n", ""},
		{"names of scheduler_perf", ".name:PerfScheduling", "/nodes", "/kind", []string{"object SchedulingThroughput/Average", "object/unchecked SchedulingThroughput/Average"},
			"| 500 | 39 | 0.50 |\n", ""},
		{"classes of scheduler_perf", ".name:PerfScheduling", "/nodes /classes", "/kind", []string{"gateon SchedulingThroughput/Average", "gateon objects"},
			"| 500 |  | – | – |\n| 500 | 50 | 26 | 25.00k |\n", ""},
		{"a gate", ".name:WorstCases", "/claims /pools", "/scheduler", []string{"gate-on check-sec/op"}, "| 64 | 256 | 20.00µs |\n", ""},
		{"a name without a key", ".name:CapacityLookup", "/topology", "/by", []string{"index sec/op"}, "| shared_value | 400.0ns |\n", ""},
		{"bytes", ".name:CapacityUpdate", "/index", ".name", []string{"CapacityUpdate stored-B/object"}, "| false | 133.5B |\n", ""},
		{"one that did not run", passes, passRows, "/scheduler", []string{"gate-on sec/op", "gate-off sec/op"}, "", `no result has "gate-off sec/op" of ` + passes},
		{"no baseline at all", passes, passRows, "/scheduler", []string{"gate-off/gate-on sec/op"}, "", `no result has "gate-off/gate-on sec/op"`},
		{"no result", ".name:Drain", "/storage", "/policy", []string{"upstream pods/s"}, "", `no result has "upstream pods/s" of .name:Drain`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Report{Results: results}.Rows(tc.filter, tc.rows, tc.column, tc.figures...)
			if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("rows:\n%swant:\n%serror %v, want %q", got, tc.want, err, tc.err)
			}
		})
	}
}

// writePage writes a page from results with these names and values, and returns the files.
func writePage(t *testing.T, name string, results [][2]string) (page, plot string) {
	t.Helper()
	text := "version: v1\ngo: go1\ncores: 2\ncpu: Some Processor\n"
	for _, result := range results {
		text += fmt.Sprintf("Benchmark%s-2 \t 1 \t %s\n", result[0], result[1])
	}
	runs := []Run{{Name: "all", Bench: "^BenchmarkX$"}}
	raw := filepath.Join(t.TempDir(), name+".txt")
	if err := (Results{"all": []byte(text)}).Save(raw, runs); err != nil {
		t.Fatal(err)
	}
	files, err := Report{Raw: raw, Runs: runs}.Write()
	if err != nil {
		t.Fatal(err)
	}
	page = read(t, files[0])
	if len(files) > 1 {
		plot = read(t, files[1])
	}
	cells := 0
	for row := range strings.Lines(page) {
		n := strings.Count(row, "|")
		if n > 0 && cells > 0 && n != cells {
			t.Errorf("a table has a row with %d cells, and one before with %d: %s", n-1, cells-1, row)
		}
		if cells = n; !strings.HasPrefix(row, "|") {
			cells = 0
		}
	}
	for _, want := range []string{"v1, go1, Some Processor, 2 cores", "    go test -tags "} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	return page, plot
}

// TestWriteScheduler makes the page from results of all that it has a table for.
func TestWriteScheduler(t *testing.T) {
	var all [][2]string
	for _, scheduler := range []string{"upstream", "gate-off", "gate-on"} {
		all = append(all, [2]string{"FindPodVolumesCapacity/nodes=100/claims=1/updates=0/scheduler=" + scheduler, "10 ns/op 5 allocs/op"},
			[2]string{"FindPodVolumesCapacity/nodes=1000/claims=1/updates=0/scheduler=" + scheduler, "90 ns/op 5 allocs/op"})
	}
	for _, on := range []string{"true", "false"} {
		all = append(all, [2]string{"WorstCases/claims=64/pools=256/objects=1/classes=1/CSIStorageCapacityV2=" + on, "10 ns/op 3 check-ns/op"},
			[2]string{"CapacityUpdate/index=" + on, "10 ns/op 3 stored-B/object"})
	}
	all = append(all, [2]string{"CapacityLookup/topology=host/nodes=5000/classes=1/walk", "10 ns/op"},
		[2]string{"CapacityLookup/topology=host/nodes=5000/classes=1/index", "10 ns/op"}, [2]string{"GetPodVolumeClaimsOfOneClass", "10 ns/op"})
	for _, kind := range []string{"/500Nodes_untracked", "/500Nodes_unchecked", "/500Nodes_gateon", "Object/500Nodes_object"} {
		all = append(all, [2]string{"PerfScheduling/DynamicProvisioning" + kind, "10 SchedulingThroughput/Average"})
	}
	if _, plot := writePage(t, "scheduler", all); !strings.Contains(plot, "<svg") {
		t.Errorf("the plot is no SVG:\n%.200s", plot)
	}
}

// TestWriteQueue does the same for the other page.
func TestWriteQueue(t *testing.T) {
	all := [][2]string{{"Churn/kills=true/policy=Object", "1 failed-provisions 2 wait-s 3 pods-left"}}
	for _, policy := range []string{"upstream", "Object", "InFlight", "confirmed"} {
		for _, room := range []string{"plenty", "tight"} {
			all = append(all, [2]string{"Drain/storage=node/capacity=changing/room=" + room + "/delay=1s/policy=" + policy, "1 drain-s 2 failed-provisions 3 pods-left 4 pods/s"})
		}
	}
	page, plot := writePage(t, "queue", all)
	if want := "| node | changing | 1s | 4 | 4 | 1.00 |"; !strings.Contains(page, want) || plot != "" {
		t.Errorf("want %q and no plot (%q):\n%s", want, plot, page)
	}
}

// TestWriteScale does the same for the page of large clusters.
func TestWriteScale(t *testing.T) {
	all := [][2]string{{"ObjectMemory/nodes=5000/classes=50", "1 cache-B/object 2 gateoff-B/object 3 index-B/object 4 ledger-B/object 250000 objects"},
		{"EntryMemory/entries=1000", "5 cache-B/claim 6 ledger-B/entry"}}
	for kind, average := range map[string]string{"gateoff": "20", "gateon": "30"} {
		all = append(all, [2]string{"PerfScheduling/ManyObjects/5000Nodes_50Classes_" + kind, average + " SchedulingThroughput/Average 21 SchedulingThroughput/Perc50 22 SchedulingThroughput/Perc99 " +
			"1 scheduler_scheduling_algorithm_duration_ms/Perc50 2 scheduler_scheduling_algorithm_duration_ms/Perc99 " +
			"3 scheduler_scheduling_attempt_duration_ms/Perc50 4 scheduler_scheduling_attempt_duration_ms/Perc99 250000 objects"})
	}
	page, plot := writePage(t, "scale", all)
	for _, want := range []string{"| 5000 | 50 | 250.0k | 20 | 21 | 22 | 30 | 21 | 22 | 1.50 |",
		"| 5000 | 50 | 250.0k | 1.000B | 2.000B | 3.000B | 4.000B |", "| 1000 | 5.000B | 6.000B |"} {
		if !strings.Contains(page, want) {
			t.Errorf("want %q:\n%s", want, page)
		}
	}
	if plot != "" {
		t.Errorf("a plot: %.200s", plot)
	}
}

// TestPages checks that each run is for a page that there is.
func TestPages(t *testing.T) {
	runs, err := Runs()
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		if _, err := templates.Open(run.Page + ".md.tmpl"); err != nil {
			t.Errorf("%s: %v", run.Name, err)
		}
	}
}

func TestTwoProcessors(t *testing.T) {
	if _, err := parse([]byte("cpu: a\nBenchmarkX 1 1 ns/op\ncpu: b\nBenchmarkY 1 1 ns/op\n")); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("results of two processors: error %v, want one that names them", err)
	}
}

func TestPlotWithoutResults(t *testing.T) {
	if err := (Report{}).plot(io.Discard); err == nil {
		t.Error("a plot of nothing, want an error")
	}
}

// TestResults measures one of three runs again.
func TestResults(t *testing.T) {
	runs := []Run{{Name: "first"}, {Name: "second"}, {Name: "not run"}}
	path := filepath.Join(t.TempDir(), "bench", "results.txt")
	if results, err := ReadResults(path); len(results) > 0 || err != nil {
		t.Errorf("without a file: %v, error %v, want nothing", results, err)
	}
	if err := (Results{"first": []byte("cpu: X\nBenchmarkX-2 1 1 ns/op\n"), "second": []byte("BenchmarkY-2 1 1 ns/op\n")}).Save(path, runs); err != nil {
		t.Fatal(err)
	}
	results, err := ReadResults(path)
	if err != nil {
		t.Fatal(err)
	}
	results["second"] = []byte("BenchmarkY-2 1 2 ns/op\n")
	if err := results.Save(path, runs); err != nil {
		t.Fatal(err)
	}
	if got, want := read(t, path), "run: first\ncpu: X\nBenchmarkX-2 1 1 ns/op\nrun: second\nBenchmarkY-2 1 2 ns/op\n"; got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
