package prove

import "capacityv2.internal/scripts/toolchain"

// verdict is what the runs of a test with and without a patch say about it.
type verdict string

// The first two are those of a patch that is needed.
const (
	failsWithout   verdict = "fails without it"
	doesNotCompile verdict = "does not compile without it"
	passesWithout  verdict = "PASSES WITHOUT IT"
	failsWith      verdict = "FAILS WITH IT"
	missing        verdict = "IS NOT THERE AFTER IT"
)

func (v verdict) proven() bool { return v == failsWithout || v == doesNotCompile }

// judgeWith returns the verdict of the run with the patch, or "" if it is as it
// should be, so that the run without it decides.
func judgeWith(test string, with toolchain.TestResult) verdict {
	switch outcome := with.Tests[test]; {
	case outcome == toolchain.Passed:
		return ""
	case outcome == "" && with.Package != toolchain.Failed:
		return missing
	}
	return failsWith
}

// judgeWithout returns the verdict of the run without the patch.
func judgeWithout(test string, without toolchain.TestResult) verdict {
	switch without.Tests[test] {
	case toolchain.Failed, toolchain.Unfinished:
		return failsWithout
	case toolchain.Passed, toolchain.Skipped:
		return passesWithout
	}
	switch {
	case without.BuildFailed:
		return doesNotCompile
	case without.Package == toolchain.Failed:
		return failsWithout // before the test has begun
	}
	return passesWithout // nothing has failed
}
