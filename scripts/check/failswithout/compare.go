// SPDX-License-Identifier: Apache-2.0

package failswithout

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"capacityv2.internal/scripts/ground/toolchain"
)

// Check compares the results of a suite on a target with what is expected, and
// returns the differences, sorted by test.
func (e Expectations) Check(suite Suite, target string, result toolchain.TestResult) []string {
	var differ []string
	want := map[string]Verdict{}
	for _, g := range suite.Groups {
		for _, t := range g.Tests {
			want[t] = g.On(target)
			if _, ran := result.Tests[t]; !ran && want[t] != NotRun {
				differ = append(differ, t+" did not run")
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(result.Tests)) {
		test, _, isSubtest := strings.Cut(name, "/")
		if _, ran := result.Tests[test]; !ran {
			test, isSubtest = name, false // a name with a slash
		}
		if isSubtest && !slices.Contains(e.Variants, path.Base(name)) {
			continue
		}
		expected, known := want[test]
		if !known {
			differ = append(differ, name+" is not in the list")
			continue
		}
		// It says nothing: one test that crashes ends the others.
		if result.Tests[name] == toolchain.Unfinished {
			differ = append(differ, name+" did not end")
			continue
		}
		if got := did(result.Tests[name]); got != expected && expected != NotRun {
			differ = append(differ, fmt.Sprintf("%s %s, expected: %s", name, got, expected))
		}
	}
	slices.Sort(differ)
	return differ
}

// Unused returns the variants of which no result has a subtest: if one gets another name,
// nothing is compared any more.
func (e Expectations) Unused(results []toolchain.TestResult) []string {
	used := map[string]bool{}
	for _, result := range results {
		for name := range result.Tests {
			if dir, base := path.Split(name); dir != "" {
				used[base] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(e.Variants), func(variant string) bool { return used[variant] })
}

// did says what a test did.
func did(o toolchain.Outcome) Verdict {
	switch o {
	case toolchain.Failed:
		return Fails
	case toolchain.Skipped:
		return skips
	}
	return Passes
}
