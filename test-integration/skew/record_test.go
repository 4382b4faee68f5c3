// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

var reportFlag = flag.String("skew.report", "", "file for the tables")

// results are what came out.
var results = record{outcomes: map[set]outcome{}}

type record struct {
	mutex    sync.Mutex
	outcomes map[set]outcome
	steps    []string
}

func (r *record) add(s set, o outcome) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.outcomes[s] = o
}

func (r *record) step(row string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.steps = append(r.steps, row)
}

// write writes all tables to the file of the flag. Tests that did not run have no rows in them.
func (r *record) write(t *testing.T) {
	if *reportFlag == "" {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err := os.WriteFile(*reportFlag, []byte(r.tables()), 0o644); err != nil {
		t.Error(err)
	}
}

// outcomeHead is the head of the columns of row.
const outcomeHead = " published | confirmation | together | apart | many | large | drained |"

func (o outcome) row() string {
	return fmt.Sprintf(" %s | %s | %s | %s | %s | %s | %s |", o.published, o.confirmation, o.together, o.apart, o.many, o.large, o.drained)
}

// tables returns the tables of docs/reference/skew-results.md.
func (r *record) tables() string {
	b := &strings.Builder{}
	b.WriteString("## One API server\n\n| API server | scheduler | provisioner | controller-manager |" + outcomeHead + "\n" + line(11))
	for _, server := range kinds {
		for _, s := range kinds {
			for _, p := range kinds {
				// One row for controller-managers that change nothing.
				var rows []outcome
				managers := map[outcome][]string{}
				for _, m := range kinds {
					o, ok := r.outcomes[set{writer: server, reader: server, scheduler: s, manager: m, provisioner: p}]
					if !ok {
						continue
					}
					if len(managers[o]) == 0 {
						rows = append(rows, o)
					}
					managers[o] = append(managers[o], string(m))
				}
				for _, o := range rows {
					fmt.Fprintf(b, "| %s | %s | %s | %s |%s\n", server, s, p, strings.Join(managers[o], ", "), o.row())
				}
			}
		}
	}
	b.WriteString("\n## Two API servers\n\n| written to | read from | scheduler |" + outcomeHead + "\n" + line(10))
	for _, s := range twoServers() {
		if o, ok := r.outcomes[s]; ok {
			fmt.Fprintf(b, "| %s | %s | %s |%s\n", s.writer, s.reader, s.scheduler, o.row())
		}
	}
	b.WriteString("\n## A scheduler with an older emulated version\n\n| API server | emulated version |" + outcomeHead + "\n" + line(9))
	for _, s := range emulations() {
		if o, ok := r.outcomes[s]; ok {
			fmt.Fprintf(b, "| %s | %s |%s\n", s.writer, s.scheduler, o.row())
		}
	}
	b.WriteString("\n## One after the other\n\n| step | all programs | quiet list | written list | quiet `volumeRebuilding` | written `volumeRebuilding` | published | confirmation |\n" +
		line(8))
	b.WriteString(strings.Join(r.steps, ""))
	return b.String()
}

// line is the one below the head of a table.
func line(columns int) string { return "|" + strings.Repeat(" --- |", columns) + "\n" }
