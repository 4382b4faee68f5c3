// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	figure   = regexp.MustCompile(`(?:^|[^\w.])([0-9]+(?:\.[0-9]+)?) ?(µs\b|ns\b|ms\b|s\b|%|B\b|KiB\b|MiB\b|times\b|pods (?:a|per) second|pods/s)?`)
	toReport = regexp.MustCompile(`\]\([^)\s]*benchmarks/(?:README\.md)?(?:#([^)\s]*))?\)`)
	target   = regexp.MustCompile(`\]\([^)\s]*\)`)
	table    = regexp.MustCompile(`:\n\n((?:\|.*\n)+)`) // it belongs to the sentence before the colon
	sentence = regexp.MustCompile(`[.?!]\s+|\n\n|\n\||\n *- `)
)

// section is what the report has below a heading, or all of it.
func section(report, name string) string {
	ends := append(heading.FindAllStringSubmatchIndex(report, -1), []int{len(report)})
	for i, m := range ends[:len(ends)-1] {
		if anchor(report[m[2]:m[3]]) == name {
			return report[m[1]:ends[i+1][0]]
		}
	}
	return report
}

// rounded says whether v, with the digits of the quoted number, is that number. With one digit, too many would be.
func rounded(v float64, quoted string) bool {
	want, _ := strconv.ParseFloat(quoted, 64)
	digits := strings.Trim(strings.ReplaceAll(quoted, ".", ""), "0")
	got, _ := strconv.ParseFloat(fmt.Sprintf("%.*g", max(len(digits), 2), v), 64)
	return math.Abs(got-want) <= 1e-9*want
}

// unfounded returns the figures that sentences and rows of tables quote, and that the sections they link to do not have.
// Tables name some units in their heads, and have 0.96 for 96%.
func unfounded(report, prose string) (none []string) {
	prose = table.ReplaceAllStringFunc(prose, func(s string) string { return strings.ReplaceAll(s, "\n", " ") + "\n" })
	seconds := strings.NewReplacer(" seconds", " s")
	for _, quote := range sentence.Split(prose, -1) {
		var source string
		for _, m := range toReport.FindAllStringSubmatch(quote, -1) {
			source += seconds.Replace(section(report, m[1]))
		}
		for _, q := range figure.FindAllStringSubmatch(seconds.Replace(target.ReplaceAllString(quote, "]")), -1) {
			found := source == "" || q[2] == "" && !strings.Contains(q[1], ".") // a count, or the number of an issue
			for _, m := range figure.FindAllStringSubmatch(source, -1) {
				v, _ := strconv.ParseFloat(m[1], 64)
				found = found || (m[2] == q[2] || m[2] == "" || q[2] == "") && rounded(v, q[1]) || q[2] == "%" && m[2] == "" && rounded(v*100, q[1])
			}
			if !found {
				none = append(none, q[1]+" "+q[2]+" in: "+strings.Join(strings.Fields(quote), " "))
			}
		}
	}
	return none
}

// TestFigures checks that pages which link to the report of the benchmarks quote numbers of it.
func TestFigures(t *testing.T) {
	all := pages(t)
	for _, p := range all {
		for _, quote := range unfounded(all["docs/benchmarks/README.md"].text, p.prose) {
			t.Errorf("%s: docs/benchmarks/README.md does not have %s", p.path, quote)
		}
	}
	for text, want := range map[string]int{
		"119 µs and 96%, of v1.37.2 ([x](../benchmarks/README.md#a)).": 0, "121 µs ([x](../benchmarks/)).": 1, "1 s. See [x](../benchmarks/README.md).": 0,
		"[x](benchmarks/README.md):\n\n| 9.1 | 97% |\n| 9.2 s | 1.2 |\n": 3, "2.996 s [x](benchmarks/#b)": 1, "3.0 ms ([x](benchmarks/#b)), 96%": 1,
	} {
		if got := unfounded("# A\n119.4µs, 0.96\n# B\n2.996ms\n# C\n9.09", text); len(got) != want {
			t.Errorf("%q: %q, want %d", text, got, want)
		}
	}
}
