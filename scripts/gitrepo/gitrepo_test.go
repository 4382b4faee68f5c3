package gitrepo

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestDirty(t *testing.T) {
	repo := Open(t.TempDir(), nil)
	git := func(args ...string) {
		t.Helper()
		if err := repo.Git(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	put := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(repo.Dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "--quiet")
	for _, name := range []string{"b.go", "c.go", "d.go"} {
		put(name, name)
	}
	git("add", ".")
	git("commit", "--quiet", "--message=base")
	if got, err := repo.Dirty(t.Context()); err != nil || got != nil {
		t.Errorf("clean tree: %q, %v", got, err)
	}
	put("b.go", "changed")
	put("a b.go", "new")
	git("rm", "--quiet", "c.go")
	git("mv", "d.go", "e.go")
	got, err := repo.Dirty(t.Context())
	if want := []string{"a b.go", "b.go", "c.go", "d.go", "e.go"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, want %q; %v", got, want, err)
	}
}
