// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"
)

// table is what the terminal shows. Where there is none, each story is printed when it
// is over.
type table struct {
	out io.Writer
	// width is that of the terminal, 0 for none.
	width int
	// lines is how many are on the screen.
	lines int
	line  string
	rows  map[int][]result
}

func newTable(out *os.File) *table {
	t := &table{out: out, rows: map[int][]result{}}
	if term.IsTerminal(int(out.Fd())) {
		t.width, _, _ = term.GetSize(int(out.Fd()))
	}
	return t
}

// say tells what begins.
func (t *table) say(format string, args ...any) {
	t.line = fmt.Sprintf(format, args...)
	if t.width == 0 {
		fmt.Fprintln(t.out, t.line)
		return
	}
	t.draw()
}

// set shows the state of a story on one side.
func (t *table) set(s story, r result) {
	rows := t.rows[s.Number]
	if n := len(rows); n > 0 && rows[n-1].Side == r.Side {
		rows[n-1] = r
	} else {
		rows = append(rows, r)
	}
	t.rows[s.Number] = rows
	if t.width > 0 {
		t.draw()
	}
}

// end shows the table for the last time.
func (t *table) end() {
	t.line = ""
	t.draw()
}

// draw replaces what is on the screen.
func (t *table) draw() {
	var b bytes.Buffer
	for _, s := range stories {
		fmt.Fprintf(&b, "Story %d: %s; %s\n", s.Number, s.Title, s.Room)
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "\trunning\tfailed provisions\ttime\tof the pods without a node, the scheduler said")
		for _, r := range t.rows[s.Number] {
			fmt.Fprintf(w, "  %s\t%d of %d\t%d\t%s\t%s\n", r.Side, r.Running, r.Wanted, r.Failed, r.time(), r.Said)
		}
		w.Flush()
		b.WriteByte('\n')
	}
	b.WriteString(t.line + "\n")
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	if t.width > 0 && t.lines > 0 {
		fmt.Fprintf(t.out, "\x1b[%dA\x1b[J", t.lines)
	}
	for _, line := range lines {
		if t.width > 0 && len(line) >= t.width {
			line = line[:t.width-1]
		}
		fmt.Fprintln(t.out, strings.TrimRight(line, " "))
	}
	t.lines = len(lines)
}

// time is the one that it took.
func (r result) time() string {
	if r.Done {
		return fmt.Sprintf("%.1f s", r.Seconds)
	}
	return fmt.Sprintf("%.0f s, not over", r.Seconds)
}
