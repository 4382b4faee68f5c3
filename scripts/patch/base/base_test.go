// SPDX-License-Identifier: Apache-2.0

package base

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/testtree"
)

// The modules of a Kubernetes that is small enough for a test.
var fake = map[string]map[string]string{
	"k8s.io/kubernetes@v1.37.2": {
		"go.mod":              "module k8s.io/kubernetes\n\ngo 1.26.0\n",
		"go.work":             "go 1.26.0\n\nuse (\n\t.\n\t./staging/src/k8s.io/api\n)\n",
		"vendor/OWNERS":       "nobody\n",
		"hack/run.sh":         "#!/usr/bin/env bash\n",
		"build/root/Makefile": "all:\n",
		"crlf.txt":            "a\r\nb\r\n",
		".gitignore":          "*.ignored\n",
		"x.ignored":           "kept all the same\n",
	},
	"k8s.io/api@v0.37.2": {
		"go.mod":   "module k8s.io/api\n\ngo 1.26.0\n",
		"types.go": "package api\n",
	},
}

// proxy serves the fake modules.
func proxy(t *testing.T) (pin string) {
	t.Helper()
	return proxyOf(t, fake)
}

// proxyOf serves modules from a folder, and returns a pin folder with their sums.
func proxyOf(t *testing.T, modules map[string]map[string]string) (pin string) {
	t.Helper()
	dir := t.TempDir()
	pin = t.TempDir()
	gomod := "module pin\n\ngo 1.26.0\n\nrequire (\n"
	var gosum strings.Builder
	for mv, files := range modules {
		path, v, _ := strings.Cut(mv, "@")
		src := t.TempDir()
		testtree.Write(t, src, files)
		at := filepath.Join(dir, path, "@v")
		var z bytes.Buffer
		if err := zip.CreateFromDir(&z, module.Version{Path: path, Version: v}, src); err != nil {
			t.Fatal(err)
		}
		testtree.Write(t, at, map[string]string{v + ".zip": z.String(), v + ".mod": files["go.mod"], v + ".info": fmt.Sprintf(`{"Version":%q}`, v)})
		sum, err := dirhash.HashZip(filepath.Join(at, v+".zip"), dirhash.Hash1)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&gosum, "%s %s %s\n", path, v, sum)
		gomod += "\t" + path + " " + v + "\n"
	}
	writeFile(t, filepath.Join(pin, "go.mod"), gomod+")\n")
	writeFile(t, filepath.Join(pin, "go.sum"), gosum.String())
	t.Setenv("GOPROXY", "file://"+filepath.ToSlash(dir))
	t.Setenv("GONOSUMDB", "*")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw")
	t.Cleanup(func() {
		// The go command writes its module cache read-only.
		_ = filepath.Walk(os.Getenv("GOMODCACHE"), func(p string, _ os.FileInfo, err error) error {
			if err == nil {
				err = os.Chmod(p, 0o755)
			}
			return err
		})
	})
	return pin
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	testtree.Write(t, "", map[string]string{path: content})
}

func ensure(t *testing.T, dir string, o Options) error {
	t.Helper()
	r := run.NewReporter(&strings.Builder{}, "test", t.TempDir())
	return r.Run(context.Background(), run.Task{Name: "tree", Do: func(ctx context.Context, s *run.Step) error {
		return Ensure(ctx, dir, o, s)
	}})
}

// options are those of Kubernetes; checkout may be "".
func options(pin, checkout string) Options {
	return Options{Title: "Kubernetes", Module: "k8s.io/kubernetes", Staging: true, Pin: pin, Version: "v1.37.2", Checkout: checkout}
}

func TestEnsureFromModules(t *testing.T) {
	pin := proxy(t)
	var heads []string
	for range 2 {
		dir := filepath.Join(t.TempDir(), "tree")
		o := options(pin, "")
		if err := ensure(t, dir, o); err != nil {
			t.Fatal(err)
		}
		repo := gitrepo.Open(dir, nil)
		h, err := repo.Rev(context.Background(), "HEAD")
		if err != nil {
			t.Fatal(err)
		}
		heads = append(heads, h)
		lines, err := repo.Lines(context.Background(), "ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD")
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			"100644 .gitignore", "120000 Makefile", "100644 build/root/Makefile", "100644 crlf.txt", "100644 go.mod",
			"100644 go.work", "100755 hack/run.sh", "100644 staging/src/k8s.io/api/go.mod", "100644 staging/src/k8s.io/api/types.go", "100644 x.ignored",
		}
		if got := strings.Join(lines, "\n"); got != strings.Join(want, "\n") {
			t.Errorf("tree:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
		}
		if dirty, err := repo.Dirty(context.Background()); err != nil || len(dirty) > 0 {
			t.Errorf("dirty after assembling: %q, %v", dirty, err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "crlf.txt")); err != nil || string(b) != "a\r\nb\r\n" {
			t.Errorf("crlf.txt: %q, %v", b, err)
		}
		if err := ensure(t, dir, o); err != nil {
			t.Errorf("a second time: %v", err)
		}
		o.Checkout = "elsewhere"
		if err := ensure(t, dir, o); !run.IsRefusal(err) || !strings.Contains(err.Error(), "unknown base") {
			t.Errorf("another base: %v, want a refusal", err)
		}
	}
	if heads[0] != heads[1] {
		t.Errorf("two assemblies have different commits: %q", heads)
	}
}

// TestEnsureInAHook has the environment that git gives its hooks in a linked work tree.
func TestEnsureInAHook(t *testing.T) {
	pin := proxy(t)
	user := gitrepo.Open(checkout(t, nil), nil)
	state := func() string {
		config, err := os.ReadFile(filepath.Join(user.Dir, ".git", "config"))
		head, e := os.ReadFile(filepath.Join(user.Dir, ".git", "logs", "HEAD"))
		if err != nil || e != nil {
			t.Fatal(err, e)
		}
		return string(config) + string(head)
	}
	before := state()
	t.Setenv("GIT_DIR", filepath.Join(user.Dir, ".git"))
	t.Setenv("GIT_INDEX_FILE", filepath.Join(user.Dir, ".git", "index"))
	dir := filepath.Join(t.TempDir(), "tree")
	err := ensure(t, dir, options(pin, ""))
	if after := state(); after != before {
		t.Errorf("the configuration and HEAD of the user's repository were\n%s\nand are\n%s", before, after)
	}
	if err != nil || !gitrepo.Open(dir, nil).Exists() {
		t.Errorf("there is no repository in %s: %v", dir, err)
	}
}

func TestEnsureRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(t *testing.T, pin, dir string, o *Options)
		want    string
	}{
		"a wrong checksum": {func(t *testing.T, pin, _ string, _ *Options) {
			b, err := os.ReadFile(filepath.Join(pin, "go.sum"))
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.SplitAfter(string(b), "\n")
			for i, l := range lines {
				if strings.HasPrefix(l, "k8s.io/api ") {
					lines[i] = "k8s.io/api v0.37.2 h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
				}
			}
			writeFile(t, filepath.Join(pin, "go.sum"), strings.Join(lines, ""))
		}, "checksum"},
		"a version that is not served": {func(_ *testing.T, _, _ string, o *Options) { o.Version = "v1.99.0" }, "cannot fetch k8s.io/kubernetes@v1.99.0"},
		"no version at all":            {func(_ *testing.T, _, _ string, o *Options) { o.Version = "master" }, `unknown base "master"`},
		"a folder that is not ours":    {func(t *testing.T, _, dir string, _ *Options) { writeFile(t, filepath.Join(dir, "mine"), "x") }, "not a git repository"},
	} {
		t.Run(name, func(t *testing.T) {
			pin := proxy(t)
			dir := filepath.Join(t.TempDir(), "work", "tree")
			o := options(pin, "")
			tc.prepare(t, pin, dir, &o)
			before, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "*"))
			err := ensure(t, dir, o)
			if !run.IsRefusal(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want a refusal that holds %q", err, tc.want)
			}
			after, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "*"))
			if strings.Join(before, ",") != strings.Join(after, ",") {
				t.Errorf("left behind: %q, before %q", after, before)
			}
		})
	}
}

func TestEnsureNoticesAChangedModuleCache(t *testing.T) {
	pin := proxy(t)
	o := options(pin, "")
	if err := ensure(t, filepath.Join(t.TempDir(), "tree"), o); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(os.Getenv("GOMODCACHE"), "k8s.io", "api@v0.37.2", "types.go"), "package evil\n")
	err := ensure(t, filepath.Join(t.TempDir(), "tree"), o)
	if !run.IsRefusal(err) || !strings.Contains(err.Error(), "wrong checksum: k8s.io/api@v0.37.2") {
		t.Errorf("got %v, want a refusal", err)
	}
}

// checkout makes what a user's git checkout at the tag looks like: LF line
// ends, a vendor folder, nested modules and staging go.mod files of its own.
func checkout(t *testing.T, change map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"vendor/modules.txt": "x\n", "hack/tools/go.mod": "module tools\n"}
	for name, content := range fake["k8s.io/kubernetes@v1.37.2"] {
		files[name] = strings.ReplaceAll(content, "\r\n", "\n")
	}
	for name, content := range fake["k8s.io/api@v0.37.2"] {
		files["staging/src/"+"k8s.io/api/"+name] = content
	}
	files["staging/src/k8s.io/api/go.mod"] = "module k8s.io/api // in the main repository\n"
	for name, content := range change {
		files[name] = content
	}
	testtree.Write(t, dir, files)
	repo := gitrepo.Open(dir, nil)
	for _, args := range [][]string{
		{"init", "--quiet"}, {"add", "--all", "--force"}, {"commit", "--quiet", "-m", "release"}, {"tag", "v1.37.2"},
		{"commit", "--quiet", "--allow-empty", "-m", "after the tag"},
	} {
		if err := repo.Git(context.Background(), args...); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestEnsureFromCheckout(t *testing.T) {
	pin := proxy(t)
	t.Run("as released", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "tree")
		src := checkout(t, nil)
		if err := ensure(t, dir, options(pin, src)); err != nil {
			t.Fatal(err)
		}
		got, err := gitrepo.Open(dir, nil).Rev(context.Background(), Ref)
		if err != nil {
			t.Fatal(err)
		}
		want, err := gitrepo.Open(src, nil).Rev(context.Background(), "v1.37.2^{commit}")
		if err != nil || got != want {
			t.Errorf("base is %s, want the tag's %s (%v)", got, want, err)
		}
	})
	for name, tc := range map[string]struct {
		change map[string]string
		tag    string
		want   string
	}{
		"a changed file":  {map[string]string{"staging/src/k8s.io/api/types.go": "package evil\n"}, "v1.37.2", "staging/src/k8s.io/api/types.go"},
		"without the tag": {nil, "other", "has no tag v1.37.2"},
	} {
		t.Run(name, func(t *testing.T) {
			src := checkout(t, tc.change)
			if err := gitrepo.Open(src, nil).Git(context.Background(), "tag", tc.tag, "v1.37.2", "--force"); err != nil {
				t.Fatal(err)
			}
			if tc.tag != "v1.37.2" {
				if err := gitrepo.Open(src, nil).Git(context.Background(), "tag", "--delete", "v1.37.2"); err != nil {
					t.Fatal(err)
				}
			}
			o := options(pin, src)
			err := ensure(t, filepath.Join(t.TempDir(), "tree"), o)
			if !run.IsRefusal(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want a refusal that holds %q", err, tc.want)
			}
		})
	}
	t.Run("not a checkout", func(t *testing.T) {
		err := ensure(t, filepath.Join(t.TempDir(), "tree"), options(pin, t.TempDir()))
		if !run.IsRefusal(err) || !strings.Contains(err.Error(), "is not the top of a git checkout") {
			t.Errorf("got %v, want a refusal", err)
		}
	})
}

func TestStagingVersion(t *testing.T) {
	for in, want := range map[string]string{
		"v1.37.2": "v0.37.2", "v1.38.0-alpha.0": "v0.38.0-alpha.0",
		"1.37.1": "", "v2.0.0": "", "v1.37.2+capacityv2.1": "", "master": "",
	} {
		got, err := StagingVersion(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("StagingVersion(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
}
