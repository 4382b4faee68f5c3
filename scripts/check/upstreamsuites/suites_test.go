// SPDX-License-Identifier: Apache-2.0

package upstreamsuites

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/testtree"
	"capacityv2.internal/scripts/ground/toolchain"
)

func TestAll(t *testing.T) {
	all, err := All()
	if err != nil || len(all) < 30 {
		t.Fatalf("%d suites, error %v", len(all), err)
	}
	for _, s := range slices.Concat(all, Quick) {
		if s.AtLeast == 0 {
			t.Errorf("%s passes without tests", s.Folder)
		}
	}
}

func TestSwitchOn(t *testing.T) {
	tree := t.TempDir()
	suite := Suite{Folder: "x"}
	dir := filepath.Join(tree, suite.Package())
	testtree.Write(t, "", map[string]string{filepath.Join(tree, "go.mod"): "module x\n\ngo 1.26\n", filepath.Join(dir, "x_test.go"): "package x\n"})
	path, err := switchOn(t.Context(), t.TempDir(), tree, suite, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	if err := json.Unmarshal(content, &overlay); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(overlay.Replace[filepath.Join(dir, gateTest)])
	if err != nil || !strings.HasPrefix(string(file), "package x\n") || !strings.Contains(string(file), "func "+gateIsOn+"(") {
		t.Errorf("overlay %v: %v\n%s", overlay, err, file)
	}
}

// readUpstream reads what go test -json prints of a suite.
func readUpstream(events string, gateOn bool) (toolchain.TestResult, error) {
	result, err := toolchain.ReadTestResult(strings.NewReader(events))
	if err == nil {
		err = checkResult(result, gateOn)
	}
	return result, err
}

// result reads what go test -json prints for tests and outcomes such as "TestA pass";
// without a name, it is that of the package.
func result(t *testing.T, gateOn bool, events ...string) (toolchain.TestResult, error) {
	t.Helper()
	var b strings.Builder
	for _, e := range events {
		test, action, _ := strings.Cut(e, " ")
		if test != "" {
			b.WriteString(`{"Action":"run","Package":"p","Test":"` + test + `"}` + "\n")
		}
		b.WriteString(`{"Action":"` + action + `","Package":"p","Test":"` + test + `","Elapsed":61}` + "\n")
	}
	return readUpstream(b.String(), gateOn)
}

func TestCheck(t *testing.T) {
	off, err := result(t, false, "TestGood pass", "TestUpstream fail", "TestGone pass", "TestGone/sub pass", "TestNew pass", "TestNew/sub pass", " fail")
	if err != nil {
		t.Fatal(err)
	}
	on, err := result(t, true, "TestGood pass", "TestUpstream fail", "TestNew fail", gateIsOn+" pass", " fail")
	if err != nil {
		t.Fatal(err)
	}
	results := Results{{Suite{Folder: "apiserver", AtLeast: 1}, off, on}}
	err = results.Check()
	for _, want := range []string{
		"apiserver: TestNew fails with the gate on only", "apiserver: TestGone fails with the gate on only", "apiserver: TestUpstream fails with the gate off",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
	for _, other := range []string{"TestGone/sub", "TestUpstream fails with the gate on only"} {
		if err != nil && strings.Contains(err.Error(), other) {
			t.Errorf("%v: says %q, and what it is of is there already", err, other)
		}
	}
}

// TestGateIsOn sees that a run in which the gate was off does not count.
func TestGateIsOn(t *testing.T) {
	for name, gate := range map[string]string{"its test fails": gateIsOn + " fail", "its test does not run": "TestC pass"} {
		if _, err := result(t, true, gate, " pass"); err == nil {
			t.Errorf("%s: no error, though the gate was off", name)
		}
	}
	on, err := result(t, true, "TestC pass", gateIsOn+" pass", " pass")
	if err != nil || len(on.Tests) != 1 || on.Count(toolchain.Passed) != 1 {
		t.Errorf("%v, error %v", on, err)
	}
	suite := Suite{Folder: "a", AtLeast: 1}
	if err := (Results{{suite, on, on}}).Check(); err != nil {
		t.Error(err)
	}
	skipped := toolchain.TestResult{Tests: map[string]toolchain.Outcome{"TestC": toolchain.Skipped, "TestD": toolchain.Passed}}
	if err := (Results{{suite, on, skipped}}).Check(); err == nil || !strings.Contains(err.Error(), "a: TestC fails with the gate on only") {
		t.Errorf("a test is skipped with the gate on: %v", err)
	}
	none := toolchain.TestResult{Tests: map[string]toolchain.Outcome{"TestA": toolchain.Skipped}}
	if err := (Results{{suite, on, none}}).Check(); err == nil || !strings.Contains(err.Error(), "a: 0 tests pass, and it has to be at least 1") {
		t.Errorf("all tests are skipped with the gate on: %v", err)
	}
}

// TestBuildFailed sees that a suite that does not compile has no result.
func TestBuildFailed(t *testing.T) {
	if result, err := readUpstream(`{"Action":"fail","Package":"p","FailedBuild":"p"}`+"\n", false); err == nil {
		t.Errorf("no error, but %v", result)
	}
}

// TestErrorsNameTheGate sees that one knows which of the two runs failed, and where to
// read on.
func TestErrorsNameTheGate(t *testing.T) {
	tree := t.TempDir()
	testtree.Write(t, tree, map[string]string{"go.mod": "module x\n\ngo 1.26\n"})
	for _, gateOn := range []bool{false, true} {
		var log string
		err := run.NewReporter(io.Discard, "suites", t.TempDir()).Run(t.Context(), run.Task{Name: "x", Do: func(ctx context.Context, s *run.Step) error {
			log = strings.TrimSuffix(s.LogPath, ".log") + "-x-none"
			_, err := Runner{Tree: tree}.run(ctx, Suite{Folder: "x/none"}, gateOn, s)
			return err
		}})
		gate := map[bool]string{false: "off", true: "on"}[gateOn]
		if want := "x/none, gate " + gate + ": "; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "(log: "+log+"-"+gate+".log)") {
			t.Errorf("got %v, want %q and the log of that run", err, want)
		}
	}
}

// TestOf: with a pattern of tests, that of the gate runs, too, and one has to pass.
func TestOf(t *testing.T) {
	for _, c := range []struct {
		pkg, tests string
		want       string
	}{
		{"./test/integration/volumescheduling", "", "{volumescheduling 40 [] false}"},
		{"./test/integration/volumescheduling", "TestA/b", "{volumescheduling 1 [-run TestA/b|" + gateIsOn + "] false}"},
		{"./test/integration/new", "", "{new 1 [] false}"},
	} {
		if suite, err := Of(c.pkg, c.tests); err != nil || fmt.Sprint(suite) != c.want || suite.Package() != c.pkg {
			t.Errorf("%s, %s: %v, error %v, want %s", c.pkg, c.tests, suite, err, c.want)
		}
	}
}
