package prove

import (
	"fmt"
	"strings"

	"capacityv2.internal/scripts/files"
)

// Table returns the expectations as a table for people.
func (e Expectations) Table() string {
	var b strings.Builder
	b.WriteString("| folder | tests | gate off | stock server | why |\n| --- | --- | --- | --- | --- |\n")
	for _, s := range e.Suites {
		for _, g := range s.Groups {
			fmt.Fprintf(&b, "| `%s/` | `%s` | %s | %s | %s |\n", s.Folder, strings.Join(g.Tests, "`, `"), g.GateOff, g.Stock, g.Why)
		}
	}
	return b.String()
}

// writer is the verb that writes the table.
const writer = "make nightly"

// CheckTable refuses a file with another table.
func (e Expectations) CheckTable(path string) error {
	return files.CheckSection(path, writer, e.Table())
}

// Write puts the table into a file, in place of the one that is there.
func (e Expectations) Write(path string) error { return files.UpdateSection(path, writer, e.Table()) }
