// SPDX-License-Identifier: Apache-2.0

package failswithout

import (
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/testtree"
	"capacityv2.internal/scripts/ground/toolchain"
)

const sample = `
variants: [InFlight]
suites:
- folder: a
  groups:
  - {tests: [TestA, TestB], gate-off: fails, stock: fails}
  - {tests: [TestC], gate-off: passes, stock: not run, why: it is slow}
- folder: b
  groups:
  - {tests: [TestD], gate-off: not run, stock: fails, why: no reason}
`

func read(t *testing.T, content string) (Expectations, error) {
	t.Helper()
	dir := t.TempDir()
	testtree.Write(t, dir, map[string]string{listFile: content})
	return ReadList(dir)
}

func TestReadList(t *testing.T) {
	e, err := read(t, sample)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := e.Suites[0].targets(), e.Suites[1].targets(); !slices.Equal(a, Targets) || !slices.Equal(b, []string{"stock"}) {
		t.Errorf("the suites run on %q and on %q", a, b)
	}
	for name, replace := range map[string][2]string{
		"unknown verdict": {"stock: not run", "stock: maybe"},
		"no reason":       {", why: it is slow", ""},
		"needless reason": {"stock: fails}", "stock: fails, why: x}"},
		"unknown field":   {"folder: a", "foldr: a"},
		"twice":           {"[TestC]", "[TestA]"},
	} {
		if _, err := read(t, strings.Replace(sample, replace[0], replace[1], 1)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestCheck(t *testing.T) {
	e, err := read(t, sample)
	if err != nil {
		t.Fatal(err)
	}
	const pass, fail, skip, unfinished = toolchain.Passed, toolchain.Failed, toolchain.Skipped, toolchain.Unfinished
	for name, c := range map[string]struct {
		target string
		tests  map[string]toolchain.Outcome
		want   []string
	}{
		"as expected": {"gate-off", map[string]toolchain.Outcome{
			"TestA": fail, "TestA/InFlight": fail, "TestA/other": pass, "TestB": fail, "TestC": pass, "TestC/InFlight": pass,
		}, nil},
		"one passes":                      {"gate-off", map[string]toolchain.Outcome{"TestA": pass, "TestB": fail, "TestC": pass}, []string{"TestA passes, expected: fails"}},
		"one is skipped":                  {"gate-off", map[string]toolchain.Outcome{"TestA": skip, "TestB": fail, "TestC": pass}, []string{"TestA is skipped, expected: fails"}},
		"one that has to pass is skipped": {"gate-off", map[string]toolchain.Outcome{"TestA": fail, "TestB": fail, "TestC": skip}, []string{"TestC is skipped, expected: passes"}},
		"a variant passes":                {"gate-off", map[string]toolchain.Outcome{"TestA": fail, "TestA/InFlight": pass, "TestB": fail, "TestC": pass}, []string{"TestA/InFlight passes, expected: fails"}},
		"a nested variant passes":         {"gate-off", map[string]toolchain.Outcome{"TestA": fail, "TestA/x/InFlight": pass, "TestB": fail, "TestC": pass}, []string{"TestA/x/InFlight passes, expected: fails"}},
		"one fails":                       {"gate-off", map[string]toolchain.Outcome{"TestA": fail, "TestB": fail, "TestC": fail}, []string{"TestC fails, expected: passes"}},
		// A test that crashes ends all that run beside it.
		"one crashes": {"gate-off", map[string]toolchain.Outcome{"TestA": fail, "TestA/InFlight": unfinished, "TestB": unfinished, "TestC": unfinished},
			[]string{"TestA/InFlight did not end", "TestB did not end", "TestC did not end"}},
		"one that is left out here crashes": {"stock", map[string]toolchain.Outcome{"TestA": fail, "TestB": fail, "TestC": unfinished}, []string{"TestC did not end"}},
		"one is missing":                    {"gate-off", map[string]toolchain.Outcome{"TestA": fail, "TestC": pass}, []string{"TestB did not run"}},
		"one is new":                        {"gate-off", map[string]toolchain.Outcome{"TestA": fail, "TestB": fail, "TestC": pass, "TestE": fail}, []string{"TestE is not in the list"}},
		"one with a slash in its name":      {"stock", map[string]toolchain.Outcome{"TestA": fail, "TestB": fail, "TestC": pass, "a pod and/or a claim": pass}, []string{"a pod and/or a claim is not in the list"}},
		"one is left out here":              {"stock", map[string]toolchain.Outcome{"TestA": fail, "TestB": fail, "TestC": fail}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := e.Check(e.Suites[0], c.target, toolchain.TestResult{Tests: c.tests}); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestUnused(t *testing.T) {
	e := Expectations{Variants: []string{"InFlight", "Object"}}
	results := []toolchain.TestResult{
		{Tests: map[string]toolchain.Outcome{"TestA": toolchain.Failed, "TestA/x/InFlight": toolchain.Failed}},
		{Tests: map[string]toolchain.Outcome{"Object": toolchain.Failed, "TestB/Objects": toolchain.Failed}},
	}
	if got, want := e.Unused(results), []string{"Object"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	results[1].Tests["TestB/Object"] = toolchain.Passed
	if got := e.Unused(results); len(got) > 0 {
		t.Errorf("got %q, want none", got)
	}
}

func TestDrift(t *testing.T) {
	e, err := read(t, "left-out: [helpers]\n"+sample)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	testtree.Write(t, dir, map[string]string{
		"a/one_test.go":           "package a\n\nfunc TestMain(m *testing.M) {}\n\nfunc TestA(t *testing.T) {}\n\nfunc testB(t *testing.T) {}\n",
		"a/two_test.go":           "package a\n\nfunc TestB(t *testing.T) {}\n\nfunc TestC(t *testing.T) {}\n",
		"a/a.go":                  "package a\n\nfunc TestNot() {}\n",
		"b/b_test.go":             "package b\n\nfunc TestD(t *testing.T) {}\n",
		"helpers/helpers_test.go": "package helpers\n\nfunc TestHelpers(t *testing.T) {}\n",
	})
	expect := func(want ...string) {
		t.Helper()
		if got, err := e.Drift(dir); err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q, error %v, want %q", got, err, want)
		}
	}
	expect()
	testtree.Write(t, dir, map[string]string{
		"b/b_test.go": "package b\n\nfunc TestE(t *testing.T) {}\n",
		"c/c_test.go": "package c\n\nfunc TestD(t *testing.T) {}\n",
	})
	expect("b: TestD is not there any more", "b: TestE is not in the list", "c: TestD is not in the list")
}
