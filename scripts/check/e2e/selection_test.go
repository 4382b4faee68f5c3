// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/testtree"
)

const (
	selectedSample = `
- {name: ours, ours: true, atLeast: 1, specs: '\[FeatureGate:X\]', quick: '.'}
- {name: driver, atLeast: 3, specs: 'External', quick: 'topology'}
`
	skippedSample = `
- {specs: 'External .* block', why: no raw block}
`
)

var samples = []string{
	"[sig-storage] pools [FeatureGate:X] fit",
	"External [A] topology fits",
	"External [A] volumes keep data",
	"External [A] volumes keep block data",
	"[sig-node] something else",
}

func readSelection(t *testing.T, selected, skipped string) (Selection, error) {
	t.Helper()
	dir := t.TempDir()
	testtree.Write(t, dir, map[string]string{"selected.yaml": selected, "skipped.yaml": skipped})
	return ReadSelection(dir)
}

func TestReadSelection(t *testing.T) {
	for name, c := range map[string]struct {
		selected, skipped string
		ok                bool
	}{
		"good":                {selectedSample, skippedSample, true},
		"nothing skipped":     {selectedSample, "[]", true},
		"no reason":           {selectedSample, "[{specs: a, why: ' '}]", false},
		"no specs":            {selectedSample, "[{why: a}]", false},
		"bad pattern":         {selectedSample, "[{specs: '(', why: a}]", false},
		"unknown field":       {selectedSample, "[{specs: a, why: a, reason: a}]", false},
		"group without quick": {"[{name: a, specs: a, atLeast: 1}]", "[]", false},
		"no number":           {"[{name: a, specs: a, quick: a}]", "[]", false},
	} {
		if _, err := readSelection(t, c.selected, c.skipped); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestChoose(t *testing.T) {
	s, err := readSelection(t, selectedSample, skippedSample)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		ours, quick bool
		only        string
		want        []string
	}{
		"ours":               {true, true, "", samples[:1]},
		"upstream's":         {false, false, "", samples[1:3]},
		"upstream's quick":   {false, true, "", samples[1:2]},
		"only":               {false, false, "keep", samples[2:3]},
		"only a skipped one": {false, false, "block", nil},
		"only elsewhere":     {false, false, "sig-node", nil},
	} {
		if got := s.Choose(samples, c.ours, c.quick, regexp.MustCompile(c.only)); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if stale := s.Stale(samples); len(stale) > 0 {
		t.Errorf("stale: %q", stale)
	}
	// What is left matches only a spec that is not selected.
	s.Skipped[0].Specs = regexp.MustCompile("else")
	if stale := s.Stale(samples); len(stale) != 1 {
		t.Errorf("stale: %q, want one", stale)
	}
	// So is a group with fewer specs than before, such as one after a new name upstream.
	s.Skipped = nil
	s.Groups[1].Specs = regexp.MustCompile("keep")
	if stale := s.Stale(samples); len(stale) != 1 || !strings.Contains(stale[0], `"driver" matches 2 specs, and it has to be at least 3`) {
		t.Errorf("stale: %q, want the group", stale)
	}
}

func TestFocus(t *testing.T) {
	focus := regexp.MustCompile(Focus([]string{"a (b)", "c [d]"}))
	for name, want := range map[string]bool{"a (b)": true, "c [d]": true, "c [d] e": false, "e c [d]": true, "a b": false} {
		// As Ginkgo does: a name is never only the end of another one.
		if got := focus.MatchString("The suite " + name); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	for name, want := range map[string]string{
		"[sig-storage] pools [FeatureGate:X] [Alpha] should fit": "pools should fit",
		"[a [b] c] d":         "d",
		"should fit [Serial]": "should fit",
	} {
		if got := Short(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
