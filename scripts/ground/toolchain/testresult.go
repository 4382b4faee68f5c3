// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"capacityv2.internal/scripts/ground/run"
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

// TestOne is [Test] for one package, and returns what its tests did. Tests that fail are no error.
func TestOne(ctx context.Context, dir string, env []string, log io.Writer, args ...string) (TestResult, error) {
	return testOne(ctx, dir, env, log, Tags, args)
}

func testOne(ctx context.Context, dir string, env []string, log io.Writer, tags string, args []string) (TestResult, error) {
	var events bytes.Buffer
	err := run.Cmd{
		Dir: dir, Env: append(Eager(), env...), Log: log, Name: "go", Args: append([]string{"test", NoVet, "-tags", tags, "-json"}, args...),
	}.Stream(ctx, io.MultiWriter(log, &events))
	if err != nil && (ctx.Err() != nil || run.ExitCode(err) != 1) {
		return TestResult{}, err
	}
	return ReadTestResult(&events)
}

// event is a line of go test -json (see go doc test2json).
type event struct {
	Action, Package, Test, FailedBuild string
}

// ReadTestResult reads the output of go test -json for one package.
func ReadTestResult(r io.Reader) (TestResult, error) {
	result, pkg := TestResult{Tests: map[string]Outcome{}, Package: Unfinished}, ""
	for d := json.NewDecoder(r); ; {
		var e event
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return result, fmt.Errorf("output of go test -json: %w", err)
		}
		if e.Package == "" {
			continue // of the compiler
		}
		if pkg = cmp.Or(pkg, e.Package); e.Package != pkg {
			return result, fmt.Errorf("output of go test -json: results of %s and %s, want one package", pkg, e.Package)
		}
		switch e.Action {
		case "run":
			result.Tests[e.Test] = Unfinished
		case "pass", "fail", "skip":
			if e.Test != "" {
				result.Tests[e.Test] = Outcome(e.Action)
				break
			}
			result.Package, result.BuildFailed = Outcome(e.Action), e.FailedBuild != ""
		}
	}
	if result.Package == Unfinished {
		return result, fmt.Errorf("output of go test -json: it ends before the package %q does", pkg)
	}
	return result, nil
}
