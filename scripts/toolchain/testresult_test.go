package toolchain

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestReadTestResults(t *testing.T) {
	results, err := ReadTestResults(strings.NewReader(`{"ImportPath":"b [b.test]","Action":"build-output","Output":"b.go:1: undefined: x\n"}
{"Action":"start","Package":"a"}
{"Action":"run","Package":"a","Test":"TestA"}
{"Action":"run","Package":"a","Test":"TestA/x"}
{"Action":"pass","Package":"a","Test":"TestA/x","Elapsed":1}
{"Action":"fail","Package":"a","Test":"TestA","Elapsed":1}
{"Action":"run","Package":"a","Test":"TestB"}
{"Action":"skip","Package":"a","Test":"TestB","Elapsed":0}
{"Action":"run","Package":"a","Test":"TestPanics"}
{"Action":"output","Package":"a","Output":"panic: x\n"}
{"Action":"fail","Package":"a","Elapsed":2.5}
{"Action":"start","Package":"b"}
{"Action":"fail","Package":"b","Elapsed":0,"FailedBuild":"b [b.test]"}
{"Action":"skip","Package":"c","Elapsed":0}
`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(maps.Keys(results)), []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Fatalf("packages %q, want %q", got, want)
	}
	a := results["a"]
	if len(a.Tests) != 4 || a.Count(Passed) != 1 || a.Count(Failed) != 1 || a.Count(Skipped) != 1 || a.Count(Unfinished) != 1 || a.Took != 2500*time.Millisecond {
		t.Errorf("a: %+v", a)
	}
	if got, want := a.Failures(), []string{"TestA", "TestPanics"}; !slices.Equal(got, want) {
		t.Errorf("failures of a: %q, want %q", got, want)
	}
	if got, want := results["b"].Failures(), []string{""}; !slices.Equal(got, want) {
		t.Errorf("failures of b, which does not compile: %q, want %q", got, want)
	}
	if !results["b"].BuildFailed || a.BuildFailed {
		t.Error("b does not compile, and a does")
	}
	if got := results["c"].Failures(); got != nil {
		t.Errorf("failures of c, which has no tests: %q", got)
	}
}

func TestReadTestResultsRefusesHalfAnOutput(t *testing.T) {
	for _, output := range []string{`{"Action":"run","Package":"a","Test":"TestA"}`, `{"Action":"run",`} {
		if _, err := ReadTestResults(strings.NewReader(output)); err == nil {
			t.Errorf("no error for %s", output)
		}
	}
}
