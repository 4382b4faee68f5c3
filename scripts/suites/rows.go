package suites

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"capacityv2.internal/scripts/files"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/toolchain"
)

// Row is a suite with its results.
type Row struct {
	Folder string `json:"folder"`
	// Tree is the hash of the source tree that it ran on.
	Tree string `json:"tree"`
	Off  Counts `json:"off"`
	On   Counts `json:"on"`
	// Worse are the tests that fail with the gate on only, Upstream those that fail
	// with it off.
	Worse    []string `json:"worse,omitempty"`
	Upstream []string `json:"upstream,omitempty"`
}

// Counts are the numbers of tests by outcome, and the time of all of them.
type Counts struct {
	Tests   int     `json:"tests"`
	Passed  int     `json:"passed"`
	Failed  int     `json:"failed"`
	Skipped int     `json:"skipped"`
	Seconds float64 `json:"seconds"`
}

// NewRow returns the row of a suite that ran on a tree with the gate off and on.
func NewRow(suite Suite, tree string, off, on toolchain.TestResult) Row {
	row := Row{Folder: suite.Folder, Tree: tree, Off: count(off), On: count(on)}
	for _, name := range off.Failures() {
		row.Upstream = append(row.Upstream, row.test(name))
	}
	for _, name := range regressions(off, on) {
		row.Worse = append(row.Worse, row.test(name))
	}
	return row
}

func count(r toolchain.TestResult) Counts {
	return Counts{
		Tests: len(r.Tests), Passed: r.Count(toolchain.Passed), Failed: r.Count(toolchain.Failed) + r.Count(toolchain.Unfinished),
		Skipped: r.Count(toolchain.Skipped), Seconds: r.Took.Round(time.Second).Seconds(),
	}
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
		_, runs := on.Tests[name]
		named := slices.ContainsFunc(names, func(test string) bool { return strings.HasPrefix(name, test+"/") })
		if !runs && !named && off.Tests[name] == toolchain.Passed {
			names = append(names, name)
		}
	}
	return names
}

// test names a test of the row's suite, or with "" all of it.
func (row Row) test(name string) string {
	if name == "" {
		name = "the package"
	}
	return fmt.Sprintf("`%s`: `%s`", row.Folder, name)
}

// Check returns an error that names the tests of the rows that fail, and the suites of which
// none passes. Tests that fail with the gate off count as well: upstream's code has to behave
// as it did without the series.
func Check(rows []Row) error {
	var failed []string
	for _, row := range rows {
		failed = append(append(failed, row.Worse...), row.Upstream...)
		if row.Off.Passed == 0 || row.On.Passed == 0 {
			failed = append(failed, "`"+row.Folder+"`: no test passes")
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return progress.Refuse("upstream's tests that fail:\n    "+strings.Join(failed, "\n    "), "none, as on the base",
		"make upstream-suites SUITE=<folder>; the output is in _work/logs/upstream-suites, in the files that end in -off.log and -on.log")
}

// ReadRows reads what [WriteRows] wrote, by the folder of the suite.
func ReadRows(path string) (map[string]Row, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]Row{}, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Row
	if err := json.Unmarshal(content, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	rows := map[string]Row{}
	for _, row := range list {
		rows[row.Folder] = row
	}
	return rows, nil
}

// WriteRows writes the rows as JSON, sorted by folder.
func WriteRows(path string, rows map[string]Row) error {
	list := slices.SortedFunc(maps.Values(rows), func(a, b Row) int { return strings.Compare(a.Folder, b.Folder) })
	return files.WriteJSON(path, list)
}
