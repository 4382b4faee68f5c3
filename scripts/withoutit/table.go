package withoutit

import (
	"fmt"
	"strings"

	"capacityv2.internal/scripts/progress"
)

// The table is between these lines.
const (
	begin = "<!-- begin: written by make fails-without -->\n"
	end   = "<!-- end -->\n"
)

// Table returns the expectations as a table for people.
func (e Expectations) Table() string {
	var b strings.Builder
	b.WriteString("| folder | tests | gate off | stock server | why |\n| --- | --- | --- | --- | --- |\n")
	for _, s := range e.Suites {
		for _, g := range s.Groups {
			tests := "all"
			if len(s.Groups) > 1 {
				tests = "`" + strings.Join(g.Tests, "`, `") + "`"
			}
			fmt.Fprintf(&b, "| `%s/` | %s | %s | %s | %s |\n", s.Folder, tests, g.GateOff, g.Stock, g.Why)
		}
	}
	return b.String()
}

// Insert puts the table into a text, in place of the one that is there.
func (e Expectations) Insert(text string) (string, error) {
	before, rest, ok := strings.Cut(text, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", progress.Refuse("no place for the table", "the lines "+strings.TrimSpace(begin)+" and "+strings.TrimSpace(end), "git checkout -- test-integration/README.md")
	}
	return before + begin + e.Table() + end + after, nil
}
