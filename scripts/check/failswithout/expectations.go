// SPDX-License-Identifier: Apache-2.0

// Package failswithout says what our tests have to do without the change, and runs the integration tests with the gate off
// and on the stock server.
package failswithout

import (
	"fmt"
	"path/filepath"
	"slices"

	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/run"
)

// Targets are the values of CAPACITYV2_TARGET, in the order of the table.
var Targets = []string{"gate-off", "stock"}

// Verdict is what a test has to do without the change.
type Verdict string

// The verdicts. End-to-end specs that are NotRun are left out. An integration suite whose
// tests are all NotRun does not run on that target; other NotRun tests run, and their
// outcome does not count.
const (
	Fails  Verdict = "fails"
	Passes Verdict = "passes"
	NotRun Verdict = "not run"
	// skips is never expected: such a test shows nothing.
	skips Verdict = "is skipped"
)

// Expectations are what all tests have to do.
type Expectations struct {
	// Variants are names of subtests that have to do what their test has to, each.
	Variants []string `json:"variants"`
	// LeftOut are folders of test-integration whose tests are not compared.
	LeftOut []string `json:"left-out,omitempty"`
	Suites  []Suite  `json:"suites"`
}

// Suite is a package of tests.
type Suite struct {
	// Folder is that of the package in test-integration.
	Folder string  `json:"folder"`
	Groups []Group `json:"groups"`
}

// Group is tests of which the same is expected.
type Group struct {
	Tests   []string `json:"tests"`
	GateOff Verdict  `json:"gate-off"`
	Stock   Verdict  `json:"stock"`
	// Reason says why they need not fail. It is empty where they do.
	Reason string `json:"why,omitempty"`
}

// On returns what is expected on a target.
func (g Group) On(target string) Verdict {
	if target == "stock" {
		return g.Stock
	}
	return g.GateOff
}

// targets are those on which any test of the suite runs.
func (s Suite) targets() []string {
	return slices.DeleteFunc(slices.Clone(Targets), func(target string) bool {
		return !slices.ContainsFunc(s.Groups, func(g Group) bool { return g.On(target) != NotRun })
	})
}

// listFile has the expectations of a folder of tests.
const listFile = "fails-without.yaml"

// ReadList reads what the tests of a folder do without the change.
func ReadList(dir string) (Expectations, error) {
	var e Expectations
	path := filepath.Join(dir, listFile)
	if err := files.ReadYAML(path, &e); err != nil {
		return e, err
	}
	for _, s := range e.Suites {
		seen := map[string]bool{}
		for _, g := range s.Groups {
			for _, target := range Targets {
				if v := g.On(target); v != Fails && v != Passes && v != NotRun {
					return e, run.Refuse(fmt.Sprintf("%s: %s: %s is %q for %v", path, s.Folder, target, v, g.Tests), "fails, passes or not run", "")
				}
			}
			if needs := g.GateOff != Fails || g.Stock != Fails; needs != (g.Reason != "") {
				return e, run.Refuse(fmt.Sprintf("%s: %s: why is %q for %v", path, s.Folder, g.Reason, g.Tests),
					"a reason where a test need not fail, and only there", "")
			}
			for _, t := range g.Tests {
				if seen[t] {
					return e, run.Refuse(fmt.Sprintf("%s: %s: %s is there twice", path, s.Folder, t), "each test once", "")
				}
				seen[t] = true
			}
		}
	}
	return e, nil
}
