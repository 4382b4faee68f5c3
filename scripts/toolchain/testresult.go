package toolchain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"capacityv2.internal/scripts/run"
)

// Outcome is how a test ended.
type Outcome string

// The outcomes of a test. Unfinished is that of a test whose program ended, or was
// ended, before it.
const (
	Passed     Outcome = "pass"
	Failed     Outcome = "fail"
	Skipped    Outcome = "skip"
	Unfinished Outcome = "unfinished"
)

// TestResult is what one run of a package's tests gave.
type TestResult struct {
	// Tests are the outcomes by name, those of subtests included.
	Tests map[string]Outcome
	// Package is the outcome of the whole package: it fails also where no test does,
	// for example when it does not compile.
	Package Outcome
	// BuildFailed says that the package or one that it imports does not compile.
	BuildFailed bool
	// Took is the time of the tests, without that of compiling them.
	Took time.Duration
}

// Count returns how many tests had the outcome.
func (r TestResult) Count(o Outcome) int {
	n := 0
	for _, got := range r.Tests {
		if got == o {
			n++
		}
	}
	return n
}

// Failures are the names of the tests that failed or did not end, sorted. In a
// package that failed without any, it is "", for the package.
func (r TestResult) Failures() []string {
	var names []string
	for name, o := range r.Tests {
		if o == Failed || o == Unfinished {
			names = append(names, name)
		}
	}
	if len(names) == 0 && r.Package == Failed {
		return []string{""}
	}
	slices.Sort(names)
	return names
}

// TestJSON is [Test] with -json: raw gets the events, which [ReadTestResults]
// reads, and so does log. Tests that fail are no error: their results say so.
func TestJSON(ctx context.Context, dir string, env []string, log, raw io.Writer, args ...string) error {
	return testJSON(ctx, dir, env, log, raw, Tags, args)
}

func testJSON(ctx context.Context, dir string, env []string, log, raw io.Writer, tags string, args []string) error {
	err := run.Cmd{
		Dir: dir, Env: append(Eager(), env...), Log: log, Name: "go", Args: append([]string{"test", NoVet, "-tags", tags, "-json"}, args...),
	}.Stream(ctx, io.MultiWriter(log, raw))
	if ctx.Err() == nil && run.ExitCode(err) == 1 {
		return nil
	}
	return err
}

// event is a line of go test -json (see go doc test2json).
type event struct {
	Action, Package, Test, FailedBuild string
	Elapsed                            float64 // seconds
}

// ReadTestResult reads the output of go test -json for one package.
func ReadTestResult(r io.Reader) (TestResult, error) {
	results, err := ReadTestResults(r)
	if err != nil {
		return TestResult{}, err
	}
	if len(results) != 1 {
		return TestResult{}, fmt.Errorf("output of go test -json: results of %d packages, want one", len(results))
	}
	return slices.Collect(maps.Values(results))[0], nil
}

// ReadTestResults reads the output of go test -json: results by import path.
func ReadTestResults(r io.Reader) (map[string]TestResult, error) {
	results := map[string]TestResult{}
	for d := json.NewDecoder(r); ; {
		var e event
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("output of go test -json: %w", err)
		}
		if e.Package == "" {
			continue // of the compiler
		}
		res, ok := results[e.Package]
		if !ok {
			res = TestResult{Tests: map[string]Outcome{}, Package: Unfinished}
		}
		switch e.Action {
		case "run":
			res.Tests[e.Test] = Unfinished
		case "pass", "fail", "skip":
			if e.Test != "" {
				res.Tests[e.Test] = Outcome(e.Action)
				break
			}
			res.Package, res.BuildFailed = Outcome(e.Action), e.FailedBuild != ""
			res.Took = time.Duration(e.Elapsed * float64(time.Second))
		}
		results[e.Package] = res
	}
	for pkg, res := range results {
		if res.Package == Unfinished {
			return nil, fmt.Errorf("output of go test -json: it ends before %s does", pkg)
		}
	}
	return results, nil
}
