// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/run"
)

// Selection is which specs are ours to run.
type Selection struct {
	// Groups are in the order of the table. A spec is in the first that it matches.
	Groups []Group
	// Skipped are specs of the groups that do not run.
	Skipped []Skipped
}

// Group is specs that are chosen and counted together. Regular expressions are for the
// full name of a spec.
type Group struct {
	Name string `json:"name"`
	// Ours is whether the specs are those of this project.
	Ours bool `json:"ours,omitempty"`
	// Specs are all of them.
	Specs *regexp.Regexp `json:"specs"`
	// AtLeast is how many there have to be: upstream may rename some.
	AtLeast int `json:"atLeast"`
	// Quick are those that run for every change.
	Quick *regexp.Regexp `json:"quick"`
}

// Skipped is specs that do not run, and the reason.
type Skipped struct {
	Specs  *regexp.Regexp `json:"specs"`
	Reason string         `json:"why"`
}

// ReadSelection reads selected.yaml and skipped.yaml of a folder.
func ReadSelection(dir string) (Selection, error) {
	s := Selection{}
	if err := files.ReadYAML(filepath.Join(dir, "selected.yaml"), &s.Groups); err != nil {
		return s, err
	}
	skipped := filepath.Join(dir, "skipped.yaml")
	if err := files.ReadYAML(skipped, &s.Skipped); err != nil {
		return s, err
	}
	for _, g := range s.Groups {
		if g.Name == "" || g.Specs == nil || g.AtLeast <= 0 || g.Quick == nil {
			return s, run.Refuse(fmt.Sprintf("selected.yaml: group %q", g.Name), "a name, specs, at least how many, and quick", "")
		}
	}
	for _, e := range s.Skipped {
		if e.Specs == nil || strings.TrimSpace(e.Reason) == "" {
			return s, run.Refuse(fmt.Sprintf("%s: an entry has specs %v and why %q", skipped, e.Specs, e.Reason), "both", "")
		}
	}
	return s, nil
}

// Group returns the group of a spec, or nil.
func (s Selection) Group(name string) *Group {
	for i, g := range s.Groups {
		if g.Specs.MatchString(name) {
			return &s.Groups[i]
		}
	}
	return nil
}

// SkipReason returns the reason why a spec does not run, or "".
func (s Selection) SkipReason(name string) string {
	for _, e := range s.Skipped {
		if e.Specs.MatchString(name) {
			return e.Reason
		}
	}
	return ""
}

// Choose returns which of all specs run: those of ours or the others, the quick ones or
// all, as far as their name matches only.
func (s Selection) Choose(all []string, ours, quick bool, only *regexp.Regexp) []string {
	var chosen []string
	for _, name := range all {
		g := s.Group(name)
		if g != nil && g.Ours == ours && (!quick || g.Quick.MatchString(name)) && only.MatchString(name) && s.SkipReason(name) == "" {
			chosen = append(chosen, name)
		}
	}
	return chosen
}

// Stale returns the groups that match fewer of all specs than they have to, and the entries of
// skipped.yaml that match none, as text.
func (s Selection) Stale(all []string) []string {
	var stale []string
	found := map[string]int{}
	for _, name := range all {
		if g := s.Group(name); g != nil {
			found[g.Name]++
		}
	}
	for _, g := range s.Groups {
		if n := found[g.Name]; n < g.AtLeast {
			stale = append(stale, fmt.Sprintf("selected.yaml: %s of the group %q matches %d specs, and it has to be at least %d", g.Specs, g.Name, n, g.AtLeast))
		}
	}
	for _, e := range s.Skipped {
		if !slices.ContainsFunc(all, func(name string) bool { return s.Group(name) != nil && e.Specs.MatchString(name) }) {
			stale = append(stale, fmt.Sprintf("skipped.yaml: %s matches no spec that is selected", e.Specs))
		}
	}
	return stale
}

// Focus is the value of --ginkgo.focus for exactly these specs.
func Focus(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = regexp.QuoteMeta(n)
	}
	// Ginkgo puts the name of the suite before that of the spec.
	return " (?:" + strings.Join(quoted, "|") + ")$"
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
