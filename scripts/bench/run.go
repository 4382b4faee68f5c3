// Package bench runs the benchmarks of the series, with upstream's code in the same run, and writes the report. It draws
// what make demo has measured.
package bench

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/toolchain"
)

// Run is one call of go test.
type Run struct {
	// Name says what is measured, Page on which page it is.
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

// Runs are all measurements.
func Runs() ([]Run, error) {
	var all []Run
	return all, yaml.UnmarshalStrict(runs, &all)
}

// args are those of the go command.
func (r Run) args() []string {
	return append([]string{"test", "-tags", toolchain.Tags, "-run", "^$", "-bench", r.Bench, "-timeout", "2h", r.Package}, r.Args...)
}

// resultLine is a line of the format that benchstat reads. Servers that log
// between the parts of a line do so on lines of their own.
var resultLine = regexp.MustCompile(`(?m)^(goos|goarch|pkg|cpu): .*$|^Benchmark\S+\s+\d+\s.*/.*$`)

// Measure runs r in dir and returns the results of this version, in the format that benchstat reads. None
// is an error.
func (r Run) Measure(ctx context.Context, version, dir string, env []string, log io.Writer) ([]byte, error) {
	var out bytes.Buffer
	for range max(r.Repeat, 1) {
		err := run.Cmd{Dir: dir, Env: append(toolchain.Env(), env...), Log: io.MultiWriter(log, &out), Name: "go", Args: r.args()}.Run(ctx)
		if err != nil {
			return nil, err
		}
	}
	lines := resultLine.FindAll(out.Bytes(), -1)
	if !slices.ContainsFunc(lines, func(line []byte) bool { return bytes.HasPrefix(line, []byte("Benchmark")) }) {
		return nil, fmt.Errorf("%s has no result of a benchmark that matches %s", r.Package, r.Bench)
	}
	head := fmt.Sprintf("version: %s\ngo: %s\ncores: %d\n", version, runtime.Version(), runtime.NumCPU())
	return slices.Concat([]byte(head), bytes.Join(lines, []byte("\n")), []byte("\n")), nil
}

// Results are the lines of runs, in the format that benchstat reads, by the name of
// the run.
type Results map[string][]byte

// runKey begins the line before the results of a run.
const runKey = "run: "

// ReadResults reads the file that Save wrote. A new page has none, and no results.
func ReadResults(path string) (Results, error) {
	text, err := os.ReadFile(path)
	results, name := Results{}, ""
	if errors.Is(err, fs.ErrNotExist) {
		return results, nil
	}
	for line := range bytes.Lines(text) {
		if after, ok := strings.CutPrefix(string(line), runKey); ok {
			name = strings.TrimSpace(after)
			continue
		}
		results[name] = append(results[name], line...)
	}
	return results, err
}

// Save writes the results of runs, in their order.
func (r Results) Save(path string, runs []Run) error {
	var text []byte
	for _, run := range runs {
		if lines, ok := r[run.Name]; ok {
			text = append(text, runKey+run.Name+"\n"...)
			text = append(text, lines...)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
