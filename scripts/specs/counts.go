package specs

import (
	"slices"
	"strings"

	"capacityv2.internal/scripts/prove"
	"capacityv2.internal/scripts/toolchain"
)

// Count is what the specs of a group or suite did on a target.
type Count struct {
	Name   string `json:"name"`
	Passed int    `json:"passed"`
	Failed int    `json:"failed"`
	// Skipped counts those that did not run.
	Skipped int `json:"skipped"`
	// Why counts them by reason.
	Why map[string]int `json:"why,omitempty"`
}

// Count counts the results by group and suite, in the order of the groups. Of the
// specs among all that are selected, those without a result are skipped.
func (s Selection) Count(all []string, results []Result) []Count {
	outcome := map[string]toolchain.Outcome{}
	for _, r := range results {
		outcome[r.Name] = r.Outcome
	}
	var counts []Count
	for i := range s.Groups {
		g := &s.Groups[i]
		rows := map[string]*Count{}
		for _, name := range all {
			if s.Group(name) != g {
				continue
			}
			row := rows[g.Row(name)]
			if row == nil {
				row = &Count{Name: g.Row(name), Why: map[string]int{}}
				rows[row.Name] = row
			}
			switch outcome[name] {
			case toolchain.Passed:
				row.Passed++
			case toolchain.Failed:
				row.Failed++
			default:
				why := s.Why(name)
				if why == "" {
					why = "not run on this target"
				}
				row.Skipped++
				row.Why[why]++
			}
		}
		begin := len(counts)
		for _, row := range rows {
			counts = append(counts, *row)
		}
		slices.SortFunc(counts[begin:], func(a, b Count) int { return strings.Compare(a.Name, b.Name) })
	}
	return counts
}

// Short returns the name of a spec without what is in brackets.
func Short(name string) string {
	var words []string
	depth := 0
	for _, w := range strings.Fields(name) {
		depth += strings.Count(w, "[")
		if depth == 0 {
			words = append(words, w)
		}
		depth -= strings.Count(w, "]")
	}
	return strings.Join(words, " ")
}

// Restrict returns the part of the expectations that is about the chosen specs, or, if
// they are complete, all.
func Restrict(suite prove.Suite, chosen []string, complete bool) prove.Suite {
	if complete {
		return suite
	}
	var groups []prove.Group
	for _, g := range suite.Groups {
		g.Tests = slices.DeleteFunc(slices.Clone(g.Tests), func(t string) bool {
			return !slices.ContainsFunc(chosen, func(name string) bool { return Short(name) == t })
		})
		groups = append(groups, g)
	}
	suite.Groups = groups
	return suite
}
