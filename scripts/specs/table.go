package specs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"capacityv2.internal/scripts/files"
)

// The page with the table, and the counts that it is written from.
const (
	page   = "e2e.md"
	counts = "e2e-counts.json"
)

// Run is one of all specs on a target.
type Run struct {
	// Tree is the hash of the source tree of Kubernetes that the specs come from.
	Tree   string  `json:"tree"`
	Counts []Count `json:"counts"`
}

// WriteTable puts the counts of a target into the table of a folder with documents.
// Those of the other targets stay.
func WriteTable(dir string, targets []string, target string, run Run) error {
	all := map[string]Run{}
	file := filepath.Join(dir, counts)
	content, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(content, &all)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", file, err)
	}
	all[target] = run
	if err := files.WriteJSON(file, all); err != nil {
		return err
	}
	return files.UpdateSection(filepath.Join(dir, page), "make nightly ONLY=e2e", table(targets, all))
}

// table is for people: a line for each group or suite, and the reasons why specs do not
// run.
func table(targets []string, all map[string]Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| specs | %s |\n| --- |%s\n", strings.ReplaceAll(strings.Join(targets, " | "), "-", " "), strings.Repeat(" --- |", len(targets)))
	var names []string
	rows := map[string]map[string]Count{}
	reasons := map[string]int{}
	for _, target := range targets {
		for _, c := range all[target].Counts {
			if rows[c.Name] == nil {
				rows[c.Name] = map[string]Count{}
				names = append(names, c.Name)
			}
			rows[c.Name][target] = c
			for why, n := range c.Why {
				reasons[why] = max(reasons[why], 0)
				if target == targets[0] {
					reasons[why] += n
				}
			}
		}
	}
	for _, name := range names {
		fmt.Fprintf(&b, "| %s |", name)
		for _, target := range targets {
			if c, ok := rows[name][target]; ok {
				fmt.Fprintf(&b, " %s |", c)
			} else {
				b.WriteString(" not run yet |")
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("| tree |")
	for _, target := range targets {
		fmt.Fprintf(&b, " `%.10s` |", all[target].Tree)
	}
	b.WriteString("\n\nThe series as it is here has the tree that `appliedTree` of `patches/kubernetes/tree.lock` names.\n\nSkipped, with the gate on:\n\n")
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		if reasons[why] > 0 {
			fmt.Fprintf(&b, "- %d: %s\n", reasons[why], why)
		}
	}
	return b.String()
}

// String says in words what there is.
func (c Count) String() string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{c.Passed, "passed"}, {c.Failed, "failed"}, {c.Skipped, "skipped"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}
