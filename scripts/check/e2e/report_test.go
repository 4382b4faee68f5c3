// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

const reportSample = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites><testsuite name="s">
<testcase name="[SynchronizedBeforeSuite]" status="passed" time="1"></testcase>
<testcase name="[It] b passes" status="passed" time="1.5"><system-err>log</system-err></testcase>
<testcase name="[It] a fails" status="failed" time="2"><failure type="failed">why</failure></testcase>
<testcase name="[It] c times out" status="timedout" time="2"><failure type="timedout">why</failure></testcase>
<testcase name="[It] d is skipped" status="skipped" time="0"><skipped message="skipped - no room"></skipped></testcase>
<testcase name="[It] e is not chosen" status="skipped" time="0"><skipped message="skipped"></skipped></testcase>
<testcase name="[AfterSuite]" status="failed" time="0"></testcase>
</testsuite></testsuites>`

func TestReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "junit.xml")
	if err := os.WriteFile(path, []byte(reportSample), 0o644); err != nil {
		t.Fatal(err)
	}
	all, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	want := []Result{
		{"[AfterSuite]", "fail", ""},
		{"a fails", "fail", ""},
		{"b passes", "pass", ""},
		{"c times out", "fail", ""},
		{"d is skipped", "skip", "no room"},
		{"e is not chosen", "skip", ""},
	}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("got %+v\nwant %+v", all, want)
	}
	chosen := []string{"a fails", "b passes", "d is skipped", "e is not chosen", "f"}
	results := Ran(all, chosen)
	// What failed counts in any case: it need not be a spec.
	if got := Failed(results); !slices.Equal(got, []string{"[AfterSuite]", "a fails", "c times out"}) {
		t.Errorf("failed: %q", got)
	}
	complaints := []string{"d is skipped was skipped, and is not in skipped.yaml: no room", "e is not chosen did not run", "f did not run"}
	if got := Complaints(results, chosen); !slices.Equal(got, complaints) {
		t.Errorf("got %q\nwant %q", got, complaints)
	}
}
