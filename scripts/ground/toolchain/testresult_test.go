// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"slices"
	"strings"
	"testing"
)

func TestReadTestResult(t *testing.T) {
	read := func(output string) TestResult {
		t.Helper()
		result, err := ReadTestResult(strings.NewReader(output))
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	a := read(`{"Action":"start","Package":"a"}
{"Action":"run","Package":"a","Test":"TestA"}
{"Action":"run","Package":"a","Test":"TestA/x"}
{"Action":"pass","Package":"a","Test":"TestA/x","Elapsed":1}
{"Action":"fail","Package":"a","Test":"TestA","Elapsed":1}
{"Action":"run","Package":"a","Test":"TestB"}
{"Action":"skip","Package":"a","Test":"TestB","Elapsed":0}
{"Action":"run","Package":"a","Test":"TestPanics"}
{"Action":"output","Package":"a","Output":"panic: x\n"}
{"Action":"fail","Package":"a","Elapsed":2.5}
`)
	if len(a.Tests) != 4 || a.Count(Passed) != 1 || a.Count(Failed) != 1 || a.Count(Skipped) != 1 || a.Count(Unfinished) != 1 {
		t.Errorf("a: %+v", a)
	}
	if got, want := a.Failures(), []string{"TestA", "TestPanics"}; !slices.Equal(got, want) {
		t.Errorf("failures of a: %q, want %q", got, want)
	}
	b := read(`{"ImportPath":"b [b.test]","Action":"build-output","Output":"b.go:1: undefined: x\n"}
{"Action":"start","Package":"b"}
{"Action":"fail","Package":"b","Elapsed":0,"FailedBuild":"b [b.test]"}
`)
	if got, want := b.Failures(), []string{""}; !slices.Equal(got, want) {
		t.Errorf("failures of b, which does not compile: %q, want %q", got, want)
	}
	if !b.BuildFailed || a.BuildFailed {
		t.Error("b does not compile, and a does")
	}
	if got := read(`{"Action":"skip","Package":"c","Elapsed":0}`).Failures(); got != nil {
		t.Errorf("failures of c, which has no tests: %q", got)
	}
}

func TestReadTestResultRefuses(t *testing.T) {
	for name, output := range map[string]string{
		"half an output": `{"Action":"run","Package":"a","Test":"TestA"}`, "half a line": `{"Action":"run",`, "nothing": "",
		"two packages": `{"Action":"pass","Package":"a"}{"Action":"pass","Package":"b"}`,
	} {
		if _, err := ReadTestResult(strings.NewReader(output)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
