package overrides

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/series"
)

// patch returns a patch that touches paths.
func patch(paths ...string) series.Patch {
	var p series.Patch
	for _, path := range paths {
		p.Files = append(p.Files, &gitdiff.File{OldName: path, NewName: path})
	}
	return p
}

func TestStaging(t *testing.T) {
	for name, tc := range map[string]struct {
		patches []series.Patch
		want    []string
	}{
		"none":            {[]series.Patch{patch("pkg/apis/storage/types.go", "api/openapi-spec/swagger.json")}, nil},
		"sorted and once": {[]series.Patch{patch("staging/src/k8s.io/client-go/a.go"), patch("staging/src/k8s.io/api/storage/v1/types.go", "staging/src/k8s.io/api/go.go")}, []string{"k8s.io/api", "k8s.io/client-go"}},
		"beside a module": {[]series.Patch{patch("staging/README.md", "staging/src/k8s.io/OWNERS")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := staging(tc.patches); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestCheckList(t *testing.T) {
	modules := []Module{{Path: "k8s.io/api"}}
	path := filepath.Join(t.TempDir(), "modules.yaml")
	if err := CheckList(path, modules); !run.IsRefusal(err) {
		t.Errorf("no list: %v, want a refusal", err)
	}
	if err := WriteList(path, modules); err != nil {
		t.Fatal(err)
	}
	if err := CheckList(path, modules); err != nil {
		t.Errorf("written list: %v", err)
	}
	err := CheckList(path, append(modules, Module{Path: "k8s.io/client-go"}))
	if !run.IsRefusal(err) || !strings.Contains(err.Error(), "k8s.io/api, k8s.io/client-go") {
		t.Errorf("list without client-go: %v, want a refusal that names both", err)
	}
	if err := os.WriteFile(path, []byte("module: []\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := CheckList(path, modules); !run.IsRefusal(err) {
		t.Errorf("wrong key: %v, want a refusal", err)
	}
}

func TestPublish(t *testing.T) {
	const checkout = `module k8s.io/client-go

go 1.26.0

require (
	github.com/go-logr/logr v1.4.3
	k8s.io/api v0.0.0
)

replace k8s.io/api => ../api
`
	const want = `module k8s.io/client-go

go 1.26.0

require (
	github.com/go-logr/logr v1.4.3
	k8s.io/api v0.37.2
)
`
	// A published file keeps its bytes, odd ones too.
	odd := strings.Replace(want, "\n\ngo", "\n\n\ngo", 1)
	path := filepath.Join(t.TempDir(), "go.mod")
	for content, want := range map[string]string{checkout: want, odd: odd} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := publish(path, "v0.37.2")
		if written, readErr := os.ReadFile(path); err != nil || readErr != nil || string(got) != want || string(written) != want {
			t.Errorf("%v, %v, got:\n%s\nin the file:\n%s\nwant:\n%s", err, readErr, got, written, want)
		}
	}
}

// newTree makes a tree with one staging module at HEAD.
func newTree(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		".gitattributes":                       "version.go export-subst\n",
		"pkg/main.go":                          "package main\n",
		"staging/src/k8s.io/api/go.mod":        "module k8s.io/api\n\ngo 1.26.0\n",
		"staging/src/k8s.io/api/LICENSE":       "license\n",
		"staging/src/k8s.io/api/version.go":    "package api // $Format:%H$\n",
		"staging/src/k8s.io/api/v1/types.go":   source,
		"staging/src/k8s.io/client-go/go.mod":  "module k8s.io/client-go\n",
		"staging/src/k8s.io/client-go/main.go": "package client\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	repo := gitrepo.Open(dir, t.Output())
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "--all"}} {
		if err := repo.Git(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := repo.GitAt(t.Context(), "2026-01-01T00:00:00Z", "commit", "--quiet", "--message", "tree"); err != nil {
		t.Fatal(err)
	}
	return dir
}

// write runs Write as the verb does.
func write(t *testing.T, modules []Module, out string) (Result, error) {
	t.Helper()
	var result Result
	err := run.NewReporter(t.Output(), "test", t.TempDir()).Run(t.Context(), run.Task{Name: "write", Do: func(ctx context.Context, s *run.Step) error {
		var err error
		result, err = Write(ctx, modules, 2, out, s)
		return err
	}})
	return result, err
}

func TestWrite(t *testing.T) {
	tree := newTree(t, "package v1\n")
	api := Module{Path: "k8s.io/api", Tree: tree, Folder: "staging/src/k8s.io/api", Version: "v0.37.2"}
	out := filepath.Join(t.TempDir(), "out")
	first, err := write(t, []Module{api}, out)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(first.Overrides[0].Version, "v0.37.2-capacityv2.2.h") {
		t.Errorf("version %s", first.Overrides[0].Version)
	}
	if err := module.Check("k8s.io/api", first.Overrides[0].Version); err != nil {
		t.Errorf("version: %v", err)
	}
	if module.IsPseudoVersion(first.Overrides[0].Version) {
		t.Errorf("%s is a pseudo-version", first.Overrides[0].Version)
	}

	zipped := filepath.Join(first.Goproxy, "k8s.io/api/@v", first.Overrides[0].Version+".zip")
	unpacked := filepath.Join(t.TempDir(), "api")
	if err := zip.Unzip(unpacked, module.Version{Path: "k8s.io/api", Version: first.Overrides[0].Version}, zipped); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"v1/types.go": "package v1\n",
		// The commit is not filled in: the module is the same in every clone.
		"version.go": "package api // $Format:%H$\n",
	} {
		if got, err := os.ReadFile(filepath.Join(unpacked, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}

	// The work tree does not count, another folder does not, and what was in
	// the folder is gone.
	if err := os.WriteFile(filepath.Join(tree, "staging/src/k8s.io/api/v1/types.go"), []byte("package broken\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, out)
	if err := os.WriteFile(filepath.Join(out, "stale"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := write(t, []Module{api}, out); err != nil {
		t.Fatal(err)
	}
	if after := snapshot(t, out); after != before {
		t.Errorf("a second run wrote other bytes:\n%s\nbefore:\n%s", after, before)
	}

	api.Tree = newTree(t, "package v1 // changed\n")
	second, err := write(t, []Module{api}, filepath.Join(t.TempDir(), "changed"))
	if err != nil {
		t.Fatal(err)
	}
	if second.Overrides[0].Version == first.Overrides[0].Version {
		t.Errorf("changed content has the version %s too: the go command would not read it", first.Overrides[0].Version)
	}
}

func TestWriteRefuses(t *testing.T) {
	tree := newTree(t, "package v1\n")
	for name, modules := range map[string][]Module{
		"no tree":    {{Path: "k8s.io/api", Tree: t.TempDir(), Folder: "staging/src/k8s.io/api", Version: "v0.37.2"}},
		"no modules": {},
		"unknown":    {{Path: "k8s.io/nothing", Tree: tree, Folder: "staging/src/k8s.io/nothing", Version: "v0.37.2"}},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			if _, err := write(t, modules, filepath.Join(parent, "out")); !run.IsRefusal(err) {
				t.Errorf("%v, want a refusal", err)
			}
			if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}

func TestLines(t *testing.T) {
	r := Result{
		Overrides: []Override{{
			Module:  Module{Path: "k8s.io/api", Tree: "/tree", Folder: "staging/src/k8s.io/api"},
			Version: "v0.37.2-capacityv2.1.habc", Sum: "h1:a", GoModSum: "h1:b",
		}},
		Goproxy: "/out/goproxy",
	}
	for _, tc := range []struct{ name, got, want string }{
		{"replace", r.Replace(), "replace (\n\tk8s.io/api => k8s.io/api v0.37.2-capacityv2.1.habc\n)\n"},
		{"local", r.ReplaceLocal(), "replace (\n\tk8s.io/api => /tree/staging/src/k8s.io/api\n)\n"},
		{"sums", r.GoSum(), "k8s.io/api v0.37.2-capacityv2.1.habc h1:a\nk8s.io/api v0.37.2-capacityv2.1.habc/go.mod h1:b\n"},
		{"proxy", r.GOPROXY("direct"), "file:///out/goproxy,direct"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, tc.got, tc.want)
		}
	}
}

// snapshot returns the names and contents of all files in dir.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b bytes.Buffer
	err := fs.WalkDir(os.DirFS(dir), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, p))
		if errors.Is(err, fs.ErrNotExist) {
			return err
		}
		b.WriteString(p + "\n")
		b.Write(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
