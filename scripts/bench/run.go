package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"

	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/toolchain"
)

// Run is one call of go test.
type Run struct {
	// Name says what is measured.
	Name string
	// Dir is where go test runs, Package what it compiles.
	Dir, Package string
	// Bench selects the benchmarks.
	Bench string
	// Args are further arguments.
	Args []string
	// Repeat is how often the command runs, at least once. It is for programs
	// whose logs tear the results of -count apart.
	Repeat int
}

// args are those of the go command.
func (r Run) args() []string {
	return append([]string{"test", "-tags", toolchain.Tags, "-run", "^$", "-bench", r.Bench, "-timeout", "2h", r.Package}, r.Args...)
}

// resultLine is a line of the format that benchstat reads. Servers that log
// between the parts of a line do so on lines of their own.
var resultLine = regexp.MustCompile(`(?m)^(goos|goarch|pkg|cpu): .*$|^Benchmark\S+\s+\d+\s.*/.*$`)

// Measure runs r and returns its results, in the format that benchstat reads. None is
// an error.
func (r Run) Measure(ctx context.Context, env []string, log io.Writer) ([]byte, error) {
	var out bytes.Buffer
	for range max(r.Repeat, 1) {
		err := run.Cmd{Dir: r.Dir, Env: append(toolchain.Env(), env...), Log: io.MultiWriter(log, &out), Name: "go", Args: r.args()}.Run(ctx)
		if err != nil {
			return nil, err
		}
	}
	lines := resultLine.FindAll(out.Bytes(), -1)
	if !slices.ContainsFunc(lines, func(line []byte) bool { return bytes.HasPrefix(line, []byte("Benchmark")) }) {
		return nil, fmt.Errorf("%s has no result of a benchmark that matches %s", r.Package, r.Bench)
	}
	return append(bytes.Join(lines, []byte("\n")), '\n'), nil
}
