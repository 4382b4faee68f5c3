package base

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/mod/module"
)

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s (%v):\n%s\nwant:\n%s", filepath.Base(path), err, got, want)
	}
}

func TestFollow(t *testing.T) {
	pin, dir := t.TempDir(), t.TempDir()
	put(t, filepath.Join(pin, "go.mod"), "module pin\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/kubernetes v1.37.2\n\tk8s.io/api v0.37.2\n)\n")
	put(t, filepath.Join(pin, "go.sum"), "k8s.io/api v0.37.2 h1:new\nk8s.io/api v0.37.2/go.mod h1:newmod\n")
	put(t, filepath.Join(dir, "go.mod"), `module ours

go 1.26.0

require (
	k8s.io/api v0.37.1 // indirect
	k8s.io/kubernetes v1.37.1
	k8s.io/other v0.37.1
)

replace (
	k8s.io/api v0.0.0 => k8s.io/api v0.37.1
	k8s.io/gone v0.0.0 => k8s.io/gone v0.37.1
)
`)
	put(t, filepath.Join(dir, "go.sum"), `k8s.io/api v0.36.0 h1:older
k8s.io/api v0.37.1 h1:old
k8s.io/api v0.37.1/go.mod h1:oldmod
k8s.io/gone v0.37.1 h1:gone
k8s.io/other v0.37.1 h1:other
`)
	before := []module.Version{
		{Path: "k8s.io/kubernetes", Version: "v1.37.1"}, {Path: "k8s.io/api", Version: "v0.37.1"}, {Path: "k8s.io/gone", Version: "v0.37.1"},
	}
	if err := Follow(dir, pin, before); err != nil {
		t.Fatal(err)
	}
	wantFile(t, filepath.Join(dir, "go.mod"), `module ours

go 1.26.0

require (
	k8s.io/api v0.37.2 // indirect
	k8s.io/kubernetes v1.37.2
	k8s.io/other v0.37.1
)

replace k8s.io/api v0.0.0 => k8s.io/api v0.37.2
`)
	wantFile(t, filepath.Join(dir, "go.sum"), `k8s.io/api v0.36.0 h1:older
k8s.io/api v0.37.2 h1:new
k8s.io/api v0.37.2/go.mod h1:newmod
k8s.io/other v0.37.1 h1:other
`)
}

func TestFollowUses(t *testing.T) {
	root := t.TempDir()
	put(t, filepath.Join(root, "go.work"), `// Ours.
go 1.26.0

use (
	./test
	./trees/base
	./trees/base/staging/src/k8s.io/api
	./trees/base/staging/src/k8s.io/gone
)
`)
	put(t, filepath.Join(root, "trees", "base", "go.work"), "go 1.26.0\n\nuse (\n\t.\n\t./staging/src/k8s.io/api\n\t./staging/src/k8s.io/new\n)\n")
	if err := FollowUses(root, filepath.Join(root, "trees", "base")); err != nil {
		t.Fatal(err)
	}
	wantFile(t, filepath.Join(root, "go.work"), `// Ours.
go 1.26.0

use (
	./test
	./trees/base
	./trees/base/staging/src/k8s.io/api
	./trees/base/staging/src/k8s.io/new
)
`)
}
