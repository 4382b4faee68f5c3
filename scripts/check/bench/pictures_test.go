// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	page   = "../../../docs/benchmarks"
	update = "cd scripts && GOWORK=off go test ./check/bench -run TestPictures -update"
)

var write = flag.Bool("update", false, "draw the pictures of docs/benchmarks")

// TestPictures checks that each picture of the page is what its raw file gives.
func TestPictures(t *testing.T) {
	if *write {
		if err := DrawAll(page); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(page, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Pictures {
		want, err := p.Draw(page)
		if err != nil {
			t.Error(err)
			continue
		}
		got, err := os.ReadFile(filepath.Join(page, p.File))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what %s gives (error %v). Draw it: %s", p.File, p.Raw, err, update)
		}
		if !strings.Contains(string(text), "]("+p.File+")") {
			t.Errorf("the page does not show %s", p.File)
		}
	}
}

// TestNothingToDraw checks that no picture is drawn from results that lack something.
func TestNothingToDraw(t *testing.T) {
	for _, p := range Pictures {
		for _, raw := range []string{"", "BenchmarkOther 1 1 ns/op\n"} {
			if _, err := p.draw([]byte(raw)); err == nil {
				t.Errorf("%s is drawn from %q", p.File, raw)
			}
		}
	}
}

func TestParse(t *testing.T) {
	s, err := parse([]byte("cpu: x\nBenchmarkA/b=1-2 1 4 x\nBenchmarkA/b=1-2 1 torn\nBenchmarkA/b=1-2 1 1 x\n"), "").spread("A/b=1", "x")
	if want := (spread{1, 2.5, 4}); err != nil || s != want {
		t.Errorf("%v, error %v, want %v", s, err, want)
	}
	for seconds, want := range map[float64]string{18.51: "19 s", 0.637: "640 ms", 0.002996: "3.0 ms", 58.79e-6: "59 µs", 94e-9: "94 ns", 0.9996: "1.0 s", 9.96: "10 s"} {
		if got := took(seconds); got != want {
			t.Errorf("%v is %s, want %s", seconds, got, want)
		}
	}
}

// TestTables checks that the tables below the pictures have the same numbers as these.
func TestTables(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(page, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	perf, err := os.ReadFile(filepath.Join(page, "scheduler.txt"))
	if err != nil {
		t.Fatal(err)
	}
	all := parse(perf, "scheduler.txt")
	for _, nodes := range []int{500, 5000} {
		row := fmt.Sprintf("\n| %d |", nodes)
		var unchecked float64
		for _, w := range workloads {
			s, err := podsPerSecond(all, nodes, w.test, w.suffix)
			if err != nil {
				t.Fatal(err)
			}
			row += fmt.Sprintf(" %.0f (%.0f to %.0f) |", s.median, s.lowest, s.highest)
			switch w.suffix {
			case "unchecked":
				unchecked = s.median
			case "gateon", "object":
				row += fmt.Sprintf(" %.2f |", s.median/unchecked)
			}
		}
		if !strings.Contains(string(text), row) {
			t.Errorf("the page does not have %s", row)
		}
	}
}
