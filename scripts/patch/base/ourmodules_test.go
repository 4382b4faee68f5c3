// SPDX-License-Identifier: Apache-2.0

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

func TestUpdateGoMod(t *testing.T) {
	pin, dir := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(pin, "go.mod"), "module pin\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/kubernetes v1.37.2\n\tk8s.io/api v0.37.2\n)\n")
	writeFile(t, filepath.Join(pin, "go.sum"), "k8s.io/api v0.37.2 h1:new\nk8s.io/api v0.37.2/go.mod h1:newmod\n")
	writeFile(t, filepath.Join(dir, "go.mod"), `module ours

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
	writeFile(t, filepath.Join(dir, "go.sum"), `k8s.io/api v0.36.0 h1:older
k8s.io/api v0.37.1 h1:old
k8s.io/api v0.37.1/go.mod h1:oldmod
k8s.io/gone v0.37.1 h1:gone
k8s.io/other v0.37.1 h1:other
`)
	before := []module.Version{
		{Path: "k8s.io/kubernetes", Version: "v1.37.1"}, {Path: "k8s.io/api", Version: "v0.37.1"}, {Path: "k8s.io/gone", Version: "v0.37.1"},
	}
	if err := UpdateGoMod(dir, pin, before); err != nil {
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

func TestUpdateGoWork(t *testing.T) {
	root := t.TempDir()
	writeFile(t, filepath.Join(root, "go.work"), `// Ours.
go 1.26.0

godebug default=go1.26

use (
	./test
	./trees/base
	./trees/base/staging/src/k8s.io/api
	./trees/base/staging/src/k8s.io/gone
)
`)
	writeFile(t, filepath.Join(root, "trees", "base", "go.work"), "go 1.27.0\n\ngodebug default=go1.27\n\nuse (\n\t.\n\t./staging/src/k8s.io/api\n\t./staging/src/k8s.io/new\n)\n")
	if err := UpdateGoWork(root, filepath.Join(root, "trees", "base")); err != nil {
		t.Fatal(err)
	}
	wantFile(t, filepath.Join(root, "go.work"), `// Ours.
go 1.27.0

godebug default=go1.27

use (
	./test
	./trees/base
	./trees/base/staging/src/k8s.io/api
	./trees/base/staging/src/k8s.io/new
)
`)
}
