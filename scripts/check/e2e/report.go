// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/xml"
	"fmt"
	"os"
	"slices"
	"strings"

	"capacityv2.internal/scripts/ground/toolchain"
)

// Result is what a spec did.
type Result struct {
	Name    string
	Outcome toolchain.Outcome
	// Reason is why it was skipped, in the spec's own words. It is empty for a spec
	// that was not chosen.
	Reason string
}

// junit is the part of Ginkgo's JUnit report that we read.
type junit struct {
	Suites []struct {
		Cases []struct {
			Name    string `xml:"name,attr"`
			Status  string `xml:"status,attr"`
			Skipped *struct {
				Message string `xml:"message,attr"`
			} `xml:"skipped"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

// specPrefix is how the name of a spec starts in the report, unlike that of what runs
// before and after all of them.
const specPrefix = "[It] "

// Read reads a report, sorted by name. What runs around the specs is in it only where
// it failed.
func Read(path string) ([]Result, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var report junit
	if err := xml.Unmarshal(content, &report); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var results []Result
	for _, suite := range report.Suites {
		for _, c := range suite.Cases {
			name, isSpec := strings.CutPrefix(c.Name, specPrefix)
			r := Result{Name: strings.TrimSpace(name), Outcome: toolchain.Failed}
			switch c.Status {
			case "passed":
				r.Outcome = toolchain.Passed
			case "skipped", "pending":
				r.Outcome = toolchain.Skipped
				if c.Skipped != nil {
					_, r.Reason, _ = strings.Cut(c.Skipped.Message, " - ")
				}
			}
			if isSpec || r.Outcome == toolchain.Failed {
				results = append(results, r)
			}
		}
	}
	slices.SortFunc(results, func(a, b Result) int { return strings.Compare(a.Name, b.Name) })
	return results, nil
}

// Names returns the names of results.
func Names(results []Result) []string {
	names := make([]string, len(results))
	for i, r := range results {
		names[i] = r.Name
	}
	return names
}

// Ran returns the results of specs that were chosen, and of what failed around them.
func Ran(results []Result, chosen []string) []Result {
	return slices.DeleteFunc(slices.Clone(results), func(r Result) bool {
		return r.Outcome != toolchain.Failed && !slices.Contains(chosen, r.Name)
	})
}

// Complaints returns what is wrong with a run of the chosen specs, but for those that
// failed: specs that did not run, and those that were skipped without being listed.
func Complaints(results []Result, chosen []string) []string {
	var complaints []string
	for _, name := range chosen {
		i := slices.IndexFunc(results, func(r Result) bool { return r.Name == name })
		switch {
		case i < 0 || results[i].Outcome == toolchain.Skipped && results[i].Reason == "":
			complaints = append(complaints, name+" did not run")
		case results[i].Outcome == toolchain.Skipped:
			complaints = append(complaints, fmt.Sprintf("%s was skipped, and is not in skipped.yaml: %s", name, results[i].Reason))
		}
	}
	return complaints
}

// Failed returns the names of the results that failed.
func Failed(results []Result) []string {
	var names []string
	for _, r := range results {
		if r.Outcome == toolchain.Failed {
			names = append(names, r.Name)
		}
	}
	return names
}
