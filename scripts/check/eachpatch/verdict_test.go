// SPDX-License-Identifier: Apache-2.0

package eachpatch

import (
	"testing"

	"capacityv2.internal/scripts/ground/toolchain"
)

func TestVerdict(t *testing.T) {
	result := func(pkg toolchain.Outcome, buildFailed bool, outcome toolchain.Outcome) toolchain.TestResult {
		r := toolchain.TestResult{Tests: map[string]toolchain.Outcome{"TestOther": toolchain.Passed}, Package: pkg, BuildFailed: buildFailed}
		if outcome != "" {
			r.Tests["TestX"] = outcome
		}
		return r
	}
	passes := result(toolchain.Passed, false, toolchain.Passed)
	for name, c := range map[string]struct {
		with, without toolchain.TestResult
		want          verdict
	}{
		"fails":                     {passes, result(toolchain.Failed, false, toolchain.Failed), failsWithout},
		"panics":                    {passes, result(toolchain.Failed, false, toolchain.Unfinished), failsWithout},
		"panics before":             {passes, result(toolchain.Failed, false, ""), failsWithout},
		"does not compile":          {passes, result(toolchain.Failed, true, ""), doesNotCompile},
		"passes anyway":             {passes, passes, passesWithout},
		"is skipped":                {passes, result(toolchain.Passed, false, toolchain.Skipped), passesWithout},
		"another one fails":         {passes, result(toolchain.Failed, false, toolchain.Passed), passesWithout},
		"is not run":                {passes, result(toolchain.Passed, false, ""), passesWithout},
		"comes later":               {with: result(toolchain.Passed, false, ""), want: missing},
		"is skipped with the patch": {with: result(toolchain.Passed, false, toolchain.Skipped), want: failsWith},
		"fails with it":             {with: result(toolchain.Failed, false, toolchain.Failed), want: failsWith},
		"does not compile with it":  {with: result(toolchain.Failed, true, ""), want: failsWith},
	} {
		t.Run(name, func(t *testing.T) {
			got := judgeWith("TestX", c.with)
			if got == "" {
				got = judgeWithout("TestX", c.without)
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if want := c.want == failsWithout || c.want == doesNotCompile; got.proven() != want {
				t.Errorf("%q: proven is %t", got, got.proven())
			}
		})
	}
}
