package withoutit

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
const writer = "make fails-without"

// Insert puts the table into a text, in place of the one that is there.
func (e Expectations) Insert(text string) (string, error) {
	return files.ReplaceSection(text, writer, e.Table())
}

// Write is [Expectations.Insert] in a file.
func (e Expectations) Write(path string) error { return files.UpdateSection(path, writer, e.Table()) }
