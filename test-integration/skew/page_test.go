// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// page is written by make test LONG=1, between these lines.
const (
	page  = "../../docs/reference/skew-results.md"
	begin = "<!-- begin: written by make test LONG=1 -->\n"
	end   = "<!-- end -->\n"
)

// TestPage checks that docs/reference/skew-results.md has each combination and each step once, with what has to come out of
// it, and each program that does not start. It starts nothing.
func TestPage(t *testing.T) {
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok1 := strings.Cut(string(content), begin)
	written, _, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no lines %q and %q", page, begin, end)
	}
	r := record{outcomes: map[set]outcome{}}
	for _, s := range slices.Concat(matrix(), twoServers(), emulations()) {
		r.add(s, expect(s))
	}
	for i, s := range expectSteps(upgrade) {
		r.step(s.row(i + 1))
	}
	if diff := cmp.Diff(r.tables(), written); diff != "" {
		t.Errorf("%s (-want +got):\n%s\nrun make test LONG=1", page, diff)
	}

	for _, one := range refusals("") {
		if row := one.row(); !strings.Contains(string(content), row) {
			t.Errorf("%s does not have the row %s", page, row)
		}
	}
}
