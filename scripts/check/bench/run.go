// SPDX-License-Identifier: Apache-2.0

// Package bench runs the benchmarks of the series, with upstream's code in the same run, and compares them.
package bench

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
)

// Run is one call of go test.
type Run struct {
	// Name says what is measured, Page in which files of docs/benchmarks it is.
	Name, Page string
	// In is the project whose tree has the Package, or the folder of ours.
	In, Package string
	// Bench selects the benchmarks.
	Bench string
	// Args are further arguments.
	Args []string
	// Repeat is how often the command runs, at least once.
	Repeat int
}

//go:embed runs.yaml
var runs []byte

// Select returns the runs whose name matches. None is an error.
func Select(only *regexp.Regexp) ([]Run, error) {
	var all []Run
	if err := yaml.UnmarshalStrict(runs, &all); err != nil {
		return nil, err
	}
	var names []string
	for _, r := range all {
		names = append(names, r.Name)
	}
	all = slices.DeleteFunc(all, func(r Run) bool { return !only.MatchString(r.Name) })
	if len(all) == 0 {
		return nil, run.Refuse(fmt.Sprintf("no run matches %q", only), "one of: "+strings.Join(names, "; "), "make bench ONLY='worst cases'")
	}
	return all, nil
}

// resultLine is a line of the format that benchstat reads. Servers that log
// between the parts of a line do so on lines of their own.
var resultLine = regexp.MustCompile(`(?m)^(goos|goarch|pkg|cpu): .*$|^Benchmark\S+\s+\d+\s.*/.*$`)

// Measure runs r in dir and returns the results of this version, in the format that benchstat reads. None
// is an error.
func (r Run) Measure(ctx context.Context, version, dir string, env []string, log io.Writer) ([]byte, error) {
	args := append([]string{"test", "-tags", toolchain.Tags, "-run", "^$", "-bench", r.Bench, "-timeout", "2h", r.Package}, r.Args...)
	var out bytes.Buffer
	for range max(r.Repeat, 1) {
		err := run.Cmd{Dir: dir, Env: append(toolchain.Env(), env...), Log: io.MultiWriter(log, &out), Name: "go", Args: args}.Run(ctx)
		if err != nil {
			return nil, err
		}
	}
	lines := resultLine.FindAll(out.Bytes(), -1)
	if !slices.ContainsFunc(lines, func(line []byte) bool { return bytes.HasPrefix(line, []byte("Benchmark")) }) {
		return nil, fmt.Errorf("%s has no result of a benchmark that matches %s", r.Package, r.Bench)
	}
	head := fmt.Sprintf("run: %s\nversion: %s\ngo: %s\ncores: %d\n", r.Name, version, runtime.Version(), runtime.NumCPU())
	return slices.Concat([]byte(head), bytes.Join(lines, []byte("\n")), []byte("\n")), nil
}

// Compare returns what benchstat says of the results in a file: of each benchmark, with and without the series side by
// side. scripts is the folder of this module, which pins benchstat.
func Compare(ctx context.Context, scripts, file string, log io.Writer) ([]byte, error) {
	return run.Cmd{Dir: scripts, Env: []string{"GOWORK=off"}, Log: log, Name: "go", Args: []string{"tool", "benchstat",
		"-table", ".name", "-row", ".fullname", "-col", "/scheduler,/CSIStorageCapacityV2,/by", file}}.Output(ctx)
}
