package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"capacityv2.internal/scripts/toolchain"
)

// count is what the specs of a row did, and why some did not run.
type count struct {
	outcomes map[toolchain.Outcome]int
	why      map[string]int
}

// table counts what the selected specs among all did, by group and suite, in Markdown.
func (s Selection) table(all []string, results []Result) string {
	outcome := map[string]toolchain.Outcome{}
	for _, r := range results {
		outcome[r.Name] = r.Outcome
	}
	var names []string
	rows := map[string]count{}
	for _, name := range all {
		g := s.Group(name)
		if g == nil {
			continue
		}
		row := g.Row(name)
		if !slices.Contains(names, row) {
			names = append(names, row)
			rows[row] = count{map[toolchain.Outcome]int{}, map[string]int{}}
		}
		ended := outcome[name]
		if ended != toolchain.Passed && ended != toolchain.Failed {
			ended = toolchain.Skipped
			why := s.Why(name)
			if why == "" {
				why = "not run on this target"
			}
			rows[row].why[why]++
		}
		rows[row].outcomes[ended]++
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString("| specs | passed | failed | skipped | why |\n| --- | ---: | ---: | ---: | --- |\n")
	for _, name := range names {
		n := rows[name].outcomes
		why := strings.Join(slices.Sorted(maps.Keys(rows[name].why)), "; ")
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %s |\n", name, n[toolchain.Passed], n[toolchain.Failed], n[toolchain.Skipped], why)
	}
	return b.String()
}
