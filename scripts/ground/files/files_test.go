// SPDX-License-Identifier: Apache-2.0

package files

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestUpdate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	old := time.Unix(1, 0)
	for i, step := range []struct {
		content string
		changed bool
	}{{"a", true}, {"a", false}, {"b", true}} {
		if i > 0 {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
		changed, err := Update(path, []byte(step.content))
		if err != nil || changed != step.changed {
			t.Errorf("step %d: changed %t, %v", i, changed, err)
		}
		info, err := os.Stat(path)
		if err != nil || info.ModTime().Equal(old) == step.changed {
			t.Errorf("step %d: written: %t, %v", i, !info.ModTime().Equal(old), err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != step.content {
			t.Errorf("step %d: %q, %v", i, got, err)
		}
	}
}

func TestWriteJSON(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file.json")
	for _, v := range []any{map[string]int{"old": 1}, []string{"a"}} {
		if err := WriteJSON(path, v); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "[\n  \"a\"\n]\n" {
		t.Errorf("%q, %v", got, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v: want the file alone", entries, err)
	}
}
