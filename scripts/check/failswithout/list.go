// SPDX-License-Identifier: Apache-2.0

package failswithout

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"capacityv2.internal/scripts/ground/run"
)

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// Drift returns how the tests of the folders in dir differ from the list, sorted: those
// that it lacks, and those that are gone.
func (e Expectations) Drift(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*_test.go"))
	if err != nil {
		return nil, err
	}
	var differ []string
	found := map[string]bool{}
	listed := map[string]bool{}
	for _, s := range e.Suites {
		for _, g := range s.Groups {
			for _, t := range g.Tests {
				listed[s.Folder+": "+t] = true
			}
		}
	}
	for _, file := range files {
		folder := filepath.Base(filepath.Dir(file))
		if slices.Contains(e.LeftOut, folder) {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range testFunc.FindAllSubmatch(content, -1) {
			test := folder + ": " + string(m[1])
			if found[test] = true; !listed[test] && string(m[1]) != "TestMain" {
				differ = append(differ, test+" is not in the list")
			}
		}
	}
	for test := range listed {
		if !found[test] {
			differ = append(differ, test+" is not there any more")
		}
	}
	slices.Sort(differ)
	return differ, nil
}

// LintList checks that the list of a folder has each of its tests.
func LintList(dir string) error {
	list, err := ReadList(dir)
	if err != nil {
		return err
	}
	drift, err := list.Drift(dir)
	if err != nil {
		return err
	}
	if len(drift) > 0 {
		return run.Refuse(filepath.Join(dir, listFile)+":\n    "+strings.Join(drift, "\n    "),
			"each test of the folder once", "add the test with what it does without the change, or remove it; make test LONG=1 checks that")
	}
	return nil
}
