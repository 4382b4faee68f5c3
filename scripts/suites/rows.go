package suites

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/toolchain"
)

// Row is a suite with its results.
type Row struct {
	Suite   Suite
	Off, On toolchain.TestResult
}

// Rows reads the results of the suites, and returns those that have none.
func Rows(r Runner, list []Suite) (rows []Row, missing []Suite, err error) {
	for _, suite := range list {
		off, errOff := r.Result(suite, false)
		on, errOn := r.Result(suite, true)
		err := errors.Join(errOff, errOn)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, suite)
		case err != nil:
			return nil, nil, fmt.Errorf("%s: %w", suite.Folder, err)
		default:
			rows = append(rows, Row{suite, off, on})
		}
	}
	return rows, missing, nil
}

// Check returns an error that names the regressions of the rows.
func Check(rows []Row) error {
	var worse []string
	for _, row := range rows {
		for _, name := range row.Regressions() {
			worse = append(worse, row.test(name))
		}
	}
	if len(worse) == 0 {
		return nil
	}
	return progress.Refuse("tests of upstream's that fail with the gate on only:\n    "+strings.Join(worse, "\n    "), "none", "make upstream-suites SUITE=<folder>; the output is in _work/upstream-suites")
}

// Regressions are the names of the tests that fail with the gate on and not with
// it off, and of those that pass with it off and do not run with it on, but for the
// subtests of one that is named already. A package that fails as a whole is "".
func (row Row) Regressions() []string {
	var names []string
	upstream := row.Off.Failures()
	for _, name := range row.On.Failures() {
		if !slices.Contains(upstream, name) {
			names = append(names, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(row.Off.Tests)) {
		_, runs := row.On.Tests[name]
		named := slices.ContainsFunc(names, func(test string) bool { return strings.HasPrefix(name, test+"/") })
		if !runs && !named && row.Off.Tests[name] == toolchain.Passed {
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
	return fmt.Sprintf("`%s`: `%s`", row.Suite.Folder, name)
}
