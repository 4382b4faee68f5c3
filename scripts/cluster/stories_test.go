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
			results: `[{"Story": 2, "Side": "stock scheduler", "Title": "many pods", "Wanted": 3, "Running": 1, "Failed": 12, "Seconds": 30.1,
				"Course": [{"Seconds": 1, "Running": 0}, {"Seconds": 20, "Running": 1}]},
				{"Story": 2, "Side": "with the series", "Title": "many pods", "Wanted": 3, "Running": 3, "Seconds": 4.26,
				"Course": [{"Seconds": 4.26, "Running": 3}]}]`,
			want: []string{"<svg", ">Story 2: many pods<", ">pods that run, of 3<", ">seconds<", "font-family:Liberation Sans,sans-serif",
				">stock scheduler: 1 of 3 run after 30.1 s<", ">with the series: 3 of 3 run after 4.3 s<",
				"<title>Story 2 (many pods), stock scheduler: 1 of 3 run after 30.1 s; 12 volumes refused. Story 2 (many pods), with the series: 3 of 3"},
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
