package files

import (
	"os"
	"path/filepath"
	"testing"

	"capacityv2.internal/scripts/ground/run"
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

func TestCheckSection(t *testing.T) {
	const begin, end = "<!-- begin: written by make x -->\n", "<!-- end -->\n"
	for name, c := range map[string]struct {
		text     string
		upToDate bool
	}{
		"up to date": {begin + "new\n" + end, true}, "out of date": {begin + "old\n" + end, false}, "no place": {"new\n", false},
	} {
		path := filepath.Join(t.TempDir(), "page.md")
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := CheckSection(path, "make x", "new\n"); (err == nil) != c.upToDate || err != nil && !run.IsRefusal(err) {
			t.Errorf("%s: got %v, want a refusal: %t", name, err, !c.upToDate)
		}
	}
}
