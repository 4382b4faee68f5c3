// SPDX-License-Identifier: Apache-2.0

package files

import (
	"testing"
)

func TestReplaceSection(t *testing.T) {
	const text = "a\n<!-- begin: written by make x -->\nold\n<!-- end -->\nb\n"
	got, err := ReplaceSection(text, "make x", "new\n")
	if want := "a\n<!-- begin: written by make x -->\nnew\n<!-- end -->\nb\n"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for name, text := range map[string]string{"another verb": "<!-- begin: written by make y -->\n<!-- end -->\n", "no end": "<!-- begin: written by make x -->\n"} {
		if _, err := ReplaceSection(text, "make x", ""); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
