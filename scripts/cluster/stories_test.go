// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDrawStories(t *testing.T) {
	for _, tc := range []struct {
		name, results string
		want          []string
		err           string
	}{
		{
			name: "two sides",
			results: `[{"Story": 2, "Side": "before", "Title": "many pods", "Wanted": 3, "Running": 1, "Failed": 12},
				{"Story": 2, "Side": "after", "Title": "many pods", "Wanted": 3, "Running": 3}]`,
			want: []string{"<svg", ">Story 2: many pods<", ">volumes refused<", ">before<", ">after<", ">12<", "font-family:Liberation Sans,sans-serif",
				"<title>Story 2 (many pods), before: 1 of 3 pods run, 12 volumes refused. Story 2 (many pods), after: 3 of 3"},
		},
		{name: "nothing", results: `[]`, err: "there is no story"},
		{name: "no JSON", results: `x`, err: "invalid character"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			results, out := filepath.Join(dir, "results.json"), filepath.Join(dir, "stories.svg")
			if err := os.WriteFile(results, []byte(tc.results), 0o644); err != nil {
				t.Fatal(err)
			}
			err := drawStories(results, out)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			picture, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.want {
				if !strings.Contains(string(picture), want) {
					t.Errorf("the picture has no %q", want)
				}
			}
		})
	}
}
