// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"capacityv2.internal/scripts/ground/run"
)

// resultLine is what a person and a CI look for in the output of go test: how packages ended, and which tests failed or were skipped.
var resultLine = regexp.MustCompile(`^(ok  \t|FAIL|PASS|panic: |\s*--- (FAIL|SKIP))`)

// reasonLine is what a test says itself, but not what the programs that it starts have logged. Without -v, only tests that failed do so.
// It may go on in the lines that are indented further, of which reasonLines are enough.
var reasonLine = regexp.MustCompile(`^(\s+)\w+_test\.go:\d+: `)

const reasonLines = 4

// NoVet keeps go test from vetting, for which it reads all that a package imports, once
// more for each set of tags and for the race detector. Our modules are vetted by make
// lint, and what the patches touch by [UnitTest] in make test.
const NoVet = "-vet=off"

// Test runs go test in dir, without vet. Everything goes to log; out gets the closing line
// of each package, the names of failed tests and, without -v, why they failed, with -v also those of skipped ones.
func Test(ctx context.Context, dir string, env []string, log, out io.Writer, args ...string) error {
	return goTest(ctx, dir, env, log, out, Tags, append([]string{NoVet}, args...))
}

// RunPattern is what the flag -run takes for one test or subtest.
func RunPattern(test string) string { return "^" + strings.ReplaceAll(test, "/", "$/^") + "$" }

func goTest(ctx context.Context, dir string, env []string, log, out io.Writer, tags string, args []string) error {
	lines := results(out, !slices.Contains(args, "-v"))
	err := run.Cmd{
		Dir: dir, Env: slices.Concat(Eager(), env, InTree(dir)), Log: io.MultiWriter(log, lines), Name: "go",
		Args: append([]string{"test", "-tags", tags}, args...),
	}.Run(ctx)
	lines.Flush()
	return err
}

// results passes on the lines that match resultLine, and perhaps reasonLine.
func results(out io.Writer, withReasons bool) *run.Lines {
	var further string // the indentation with which a reason goes on
	more := 0
	return &run.Lines{Each: func(line string) {
		reason := reasonLine.FindStringSubmatch(line)
		switch {
		case resultLine.MatchString(line):
			more = 0
		case withReasons && reason != nil:
			further, more = reason[1]+"    ", reasonLines
		case more > 0 && strings.HasPrefix(line, further):
			more--
		default:
			more = 0
			return
		}
		fmt.Fprintln(out, line) // the log has it too
	}}
}

// WriteOverlay writes to dir what the go command's flag -overlay takes: it reads the
// values of replace where it looks for the keys. It returns the path of the file.
func WriteOverlay(dir string, replace map[string]string) (string, error) {
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, content, 0o644)
}
