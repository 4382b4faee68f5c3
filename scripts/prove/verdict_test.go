package prove

import (
	"testing"

	"capacityv2.internal/scripts/toolchain"
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
		want          Verdict
	}{
		"fails":                     {passes, result(toolchain.Failed, false, toolchain.Failed), Fails},
		"panics":                    {passes, result(toolchain.Failed, false, toolchain.Unfinished), Fails},
		"panics before":             {passes, result(toolchain.Failed, false, ""), Fails},
		"does not compile":          {passes, result(toolchain.Failed, true, ""), DoesNotCompile},
		"passes anyway":             {passes, passes, Passes},
		"is skipped":                {passes, result(toolchain.Passed, false, toolchain.Skipped), Passes},
		"another one fails":         {passes, result(toolchain.Failed, false, toolchain.Passed), Passes},
		"is not run":                {passes, result(toolchain.Passed, false, ""), Passes},
		"comes later":               {with: result(toolchain.Passed, false, ""), want: Missing},
		"is skipped with the patch": {with: result(toolchain.Passed, false, toolchain.Skipped), want: FailsWith},
		"fails with it":             {with: result(toolchain.Failed, false, toolchain.Failed), want: FailsWith},
		"does not compile with it":  {with: result(toolchain.Failed, true, ""), want: FailsWith},
	} {
		t.Run(name, func(t *testing.T) {
			got := judgeWith("TestX", c.with)
			if got == "" {
				got = judgeWithout("TestX", c.without)
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if proven := c.want == Fails || c.want == DoesNotCompile; got.Proven() != proven {
				t.Errorf("%q: Proven is %t", got, got.Proven())
			}
		})
	}
}
