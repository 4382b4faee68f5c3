package tools

import (
	"os"
	"path/filepath"
	"testing"
)

func TestStampChangesWithThePin(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stamp := func(tl Tool) string {
		t.Helper()
		s, err := tl.stamp(dir)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	write("go.mod", "module a\n")
	write("go.sum", "x h1:1\n")
	first := stamp(Etcd)
	if again := stamp(Etcd); again != first {
		t.Error("another stamp for the same pin")
	}
	write("go.sum", "x h1:2\n")
	if stamp(Etcd) == first {
		t.Error("the same stamp for another sum")
	}
	write("go.sum", "x h1:1\n")
	changed := Etcd
	changed.tags = "other"
	if stamp(changed) == first {
		t.Error("the same stamp for other tags")
	}
}
