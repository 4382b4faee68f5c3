// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
)

// page is one that has what a suite found out.
type page struct {
	// path is that of the page.
	path string
	// suite is a folder, and test its test that the page has all.
	suite, test string
	// report is the flag that tells the suite where to put its report, and long are those with which it does all.
	report string
	long   []string
	// table is what the page has of a report.
	table func(report []byte) (string, error)
}

// writer is who writes these sections of pages.
const writer = "make test LONG=1"

// skew has all combinations of programs with and without the series.
var skew = page{path: "docs/reference/skew-results.md", suite: "./skew", test: "^TestPage$", report: "-skew.report",
	long: []string{"-timeout", "3h", "-skew.all"}, table: func(report []byte) (string, error) { return string(report), nil }}

// shapes has each shape of drivers, with long loads.
var shapes = page{path: "docs/reference/driver-shapes-results.md", suite: "./drivershapes", test: "^TestGuides$", report: "-shapes.results",
	long: []string{"-timeout", "2h", "-shapes.long"}, table: shapesTable}

// write runs the suite, writes the table of its report into the page, and runs the test of the page.
func (p page) write(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	file := strings.TrimSuffix(s.LogPath, filepath.Ext(s.LogPath)) + ".report"
	if err := os.RemoveAll(file); err != nil {
		return err
	}
	args := append([]string{"-count=1", p.suite, "-skip", p.test, "-v", p.report + "=" + file}, p.long...)
	if err := Test(ctx, ws, s, s.Out, nil, args...); err != nil {
		return err
	}
	report, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err := p.table(report)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := files.UpdateSection(filepath.Join(ws.Root, p.path), writer, text); err != nil {
		return err
	}
	return Test(ctx, ws, s, s.Out, nil, "-count=1", p.suite, "-run", p.test)
}

// shapesTable returns the table of the results.
func shapesTable(results []byte) (string, error) {
	var rows []struct{ Shape, Seen, Stock, Gate, Advice string }
	if err := json.Unmarshal(results, &rows); err != nil {
		return "", err
	}
	table := "| shape | seen in | stock | with the gate | what its author should do |\n|" + strings.Repeat(" --- |", 5) + "\n"
	for _, r := range rows {
		table += fmt.Sprintf("| %s | %s | %s | %s | %s |\n", r.Shape, r.Seen, r.Stock, r.Gate, r.Advice)
	}
	return table, nil
}
