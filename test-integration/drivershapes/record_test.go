// SPDX-License-Identifier: Apache-2.0

package drivershapes

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

var resultsFlag = flag.String("shapes.results", "", "file for what comes out, as JSON")

// row is what comes out of a shape, as docs/reference/driver-shapes-results.md has it.
type row struct {
	Shape string `json:"shape"`
	Seen  string `json:"seen"`
	// Stock and Gate say it in words.
	Stock  string            `json:"stock"`
	Gate   string            `json:"gate"`
	Advice string            `json:"advice"`
	Loads  map[string]result `json:"loads"`
}

// record is what came out of all shapes.
type record struct {
	mutex sync.Mutex
	rows  map[string]row
}

func (r *record) add(s *shape, all map[string]result) {
	var stock, gate outcome
	later := 0.0
	for _, one := range all {
		stock.add(one.Stock)
		gate.add(one.Gate)
		later = max(later, one.Gate.Last-one.Stock.Last)
	}
	text := gate.String()
	if s.guide != "" {
		what := fmt.Sprintf("up to %.0f s later", later)
		if len(s.worse) > 0 {
			what = "pods wait (" + strings.Join(s.worse, ", ") + ")"
			if s.restarts {
				what = "pods may wait"
			}
		}
		file, heading, _ := strings.Cut(s.guide, "#")
		text += fmt.Sprintf("; %s: [%s](../%s#%s)", what, heading, file, strings.ReplaceAll(strings.ToLower(heading), " ", "-"))
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.rows[s.name] = row{Shape: s.name, Seen: s.seen, Stock: stock.String(), Gate: text, Advice: s.advice, Loads: all}
}

func (o *outcome) add(other outcome) {
	o.Pods += other.Pods
	o.Running += other.Running
	o.Refused += other.Refused
}

func (o outcome) String() string {
	return fmt.Sprintf("%d of %d pods, %d refused", o.Running, o.Pods, o.Refused)
}

// write writes the rows in the order of the shapes.
func (r *record) write(t *testing.T) {
	if *resultsFlag == "" {
		return
	}
	var rows []row
	for _, s := range shapes {
		if one, ok := r.rows[s.name]; ok {
			rows = append(rows, one)
		}
	}
	content, err := json.MarshalIndent(rows, "", "  ")
	if err == nil {
		err = os.WriteFile(*resultsFlag, append(content, '\n'), 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}

// docs has the guides, and page is the one with the table.
const docs, page = "../../docs/", "reference/driver-shapes-results.md"

// TestGuides checks that the page has a row for each shape, with what the shape says, and that the sections exist that
// say why a driver is worse off. It starts nothing.
func TestGuides(t *testing.T) {
	read := func(file string) []string {
		content, err := os.ReadFile(docs + file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(string(content), "\n")
	}
	var rows [][]string
	for _, line := range read(page) {
		if cells := strings.Split(line, " | "); len(cells) == 5 {
			rows = append(rows, cells)
		}
	}
	for _, s := range shapes {
		if !slices.ContainsFunc(rows, func(cells []string) bool {
			return cells[0] == "| "+s.name && cells[1] == s.seen && cells[4] == s.advice+" |"
		}) {
			t.Errorf("%s has no row %q, seen in %q, with the advice %q; run make test LONG=1", page, s.name, s.seen, s.advice)
		}
		if s.guide == "" {
			continue
		}
		file, heading, _ := strings.Cut(s.guide, "#")
		if !slices.ContainsFunc(read(file), func(line string) bool { return strings.HasPrefix(line, "#") && strings.TrimLeft(line, "# ") == heading }) {
			t.Errorf("%s: %s has no heading %q", s.name, file, heading)
		}
		if len(s.worse) == 0 && s.later == 0 {
			t.Errorf("%s names %s and no load that is worse", s.name, s.guide)
		}
	}
}
