// SPDX-License-Identifier: Apache-2.0

// Package upstreamsuites runs integration suites of upstream's with the feature gate off and on, and compares what they do.
package upstreamsuites

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
)

// Suite is a package of upstream's integration tests.
type Suite struct {
	// Folder is that of the package, below test/integration.
	Folder string
	// AtLeast is how many tests have to pass: a pattern that matches none passes as well.
	AtLeast int
	// Args are further arguments of go test.
	Args []string
	// Alone is set if it cannot run with the gate off and on at the same time.
	Alone bool
}

// Package is what the go command calls it in the tree.
func (s Suite) Package() string { return parent + s.Folder }

const parent = "./test/integration/"

// Quick are those of every change: volume scheduling, and the queueing hints of the plugin.
var Quick = []Suite{
	{Folder: "volumescheduling", AtLeast: 40},
	{Folder: "scheduler/queueing", AtLeast: 16, Args: []string{"-run", "^(TestCoreResourceEnqueue|" + gateIsOn + ")$/^VolumeBinding$"}},
}

//go:embed suites.yaml
var upstream []byte

// All returns all suites that storage has to do with.
func All() (suites []Suite, err error) {
	return suites, yaml.UnmarshalStrict(upstream, &suites)
}

// Of returns the suite of a package. With a pattern of tests, one of these has to pass at least.
func Of(pkg, tests string) (Suite, error) {
	all, err := All()
	if err != nil {
		return Suite{}, err
	}
	suite := Suite{Folder: strings.TrimPrefix(pkg, parent), AtLeast: 1}
	for _, s := range all {
		if s.Folder == suite.Folder {
			suite = s
		}
	}
	if tests != "" {
		suite.AtLeast = 1
		suite.Args = append([]string{"-run", tests + "|" + gateIsOn}, suite.Args...)
	}
	return suite, nil
}

// Result is what a suite did with the gate off and on.
type Result struct {
	Suite   Suite
	Off, On toolchain.TestResult
}

// Results are those of several suites.
type Results []Result

// Check returns an error that names the tests that fail, with the gate off too: upstream's code has to behave as
// it did without the series. So it does for suites of which fewer tests pass than have to.
func (results Results) Check() error {
	var wrong []string
	for _, r := range results {
		for _, name := range r.Off.Failures() {
			wrong = append(wrong, r.Suite.test(name)+" fails with the gate off")
		}
		for _, name := range regressions(r.Off, r.On) {
			wrong = append(wrong, r.Suite.test(name)+" fails with the gate on only")
		}
		if n := min(r.Off.Count(toolchain.Passed), r.On.Count(toolchain.Passed)); n < r.Suite.AtLeast {
			wrong = append(wrong, fmt.Sprintf("%s: %d tests pass, and it has to be at least %d", r.Suite.Folder, n, r.Suite.AtLeast))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return run.Refuse("upstream's suites:\n    "+strings.Join(wrong, "\n    "),
		"tests that pass, as on the base", "look beside the log of the step, in the files that end in -off.log and -on.log")
}

// regressions are the names of the tests that fail with the gate on and not with
// it off, and of those that pass with it off and do not run with it on, but for the
// subtests of one that is named already. A package that fails as a whole is "".
func regressions(off, on toolchain.TestResult) []string {
	var names []string
	upstream := off.Failures()
	for _, name := range on.Failures() {
		if !slices.Contains(upstream, name) {
			names = append(names, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(off.Tests)) {
		outcome := on.Tests[name]
		runs := outcome != "" && outcome != toolchain.Skipped
		named := slices.ContainsFunc(names, func(test string) bool { return strings.HasPrefix(name, test+"/") })
		if !runs && !named && off.Tests[name] == toolchain.Passed {
			names = append(names, name)
		}
	}
	return names
}

// test names a test of the suite, or with "" all of it.
func (s Suite) test(name string) string {
	if name == "" {
		name = "the package"
	}
	return s.Folder + ": " + name
}
