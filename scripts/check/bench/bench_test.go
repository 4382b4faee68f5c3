// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/run"
)

const sample = `cpu: x
BenchmarkFindPodVolumesCapacity/nodes=100/claims=1/updates=0/scheduler=upstream-2 1 2000 ns/op
BenchmarkFindPodVolumesCapacity/nodes=1000/claims=1/updates=0/scheduler=upstream-2 1 30000 ns/op
BenchmarkFindPodVolumesCapacity/nodes=100/claims=1/updates=0/scheduler=gate-on-2 1 10 ns/op
BenchmarkOther/nodes=100-2 1 10 ns/op
`

func TestSelect(t *testing.T) {
	if all, err := Select(regexp.MustCompile("")); err != nil || len(all) < 8 {
		t.Errorf("%d runs, error %v", len(all), err)
	}
	if some, err := Select(regexp.MustCompile("^worst")); err != nil || len(some) != 1 {
		t.Errorf("%v, error %v", some, err)
	}
	if _, err := Select(regexp.MustCompile("^none$")); !run.IsRefusal(err) || !strings.Contains(err.Error(), "worst cases") {
		t.Errorf("error %v, want a refusal that names the runs", err)
	}
}

func TestCompare(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.txt")
	if err := os.WriteFile(file, []byte(sample), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := Compare(t.Context(), filepath.Join("..", ".."), file, t.Output())
	if err != nil || !strings.Contains(string(got), "gate-on") || !strings.Contains(string(got), "upstream") {
		t.Errorf("got %s, error %v", got, err)
	}
}
