package prove

import "capacityv2.internal/scripts/toolchain"

// Verdict is what the runs of a test with and without a patch say about it.
type Verdict string

// The verdicts. The first two are those of a patch that is needed.
const (
	Fails          Verdict = "fails without it"
	DoesNotCompile Verdict = "does not compile without it"
	Passes         Verdict = "PASSES WITHOUT IT"
	FailsWith      Verdict = "FAILS WITH IT"
	Missing        Verdict = "IS NOT THERE AFTER IT"
)

// Proven reports whether the patch is needed.
func (v Verdict) Proven() bool { return v == Fails || v == DoesNotCompile }

// judgeWith returns the verdict of the run with the patch, or "" if it is as it
// should be, so that the run without it decides.
func judgeWith(test string, with toolchain.TestResult) Verdict {
	switch outcome := with.Tests[test]; {
	case outcome == toolchain.Passed:
		return ""
	case outcome == "" && with.Package != toolchain.Failed:
		return Missing
	}
	return FailsWith
}

// judgeWithout returns the verdict of the run without the patch.
func judgeWithout(test string, without toolchain.TestResult) Verdict {
	switch without.Tests[test] {
	case toolchain.Failed, toolchain.Unfinished:
		return Fails
	case toolchain.Passed, toolchain.Skipped:
		return Passes
	}
	switch {
	case without.BuildFailed:
		return DoesNotCompile
	case without.Package == toolchain.Failed:
		return Fails // before the test has begun
	}
	return Passes // nothing has failed
}
