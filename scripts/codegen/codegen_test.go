package codegen

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/workspace"
)

func TestParseScope(t *testing.T) {
	for in, want := range map[string]Scope{"": Storage, "storage": Storage, "all": All} {
		if got, err := ParseScope(in); err != nil || got != want {
			t.Errorf("ParseScope(%q) = %q, %v", in, got, err)
		}
	}
	if _, err := ParseScope("some"); !progress.IsRefusal(err) {
		t.Errorf("ParseScope(some): %v, want a refusal", err)
	}
}

func TestShellDefault(t *testing.T) {
	const sh = "# X_VERSION=1\nETCD_VERSION=${ETCD_VERSION:-3.7.0}\nPROTOC_VERSION=23.4\nQUOTED=\"1.2.3-rc.1\"\nOTHER=${X}\n"
	for in, want := range map[string]string{"ETCD_VERSION": "3.7.0", "PROTOC_VERSION": "23.4", "QUOTED": "1.2.3-rc.1", "OTHER": "", "X_VERSION": ""} {
		got, ok := shellDefault(sh, in)
		if got != want || ok != (want != "") {
			t.Errorf("%s = %q, %v; want %q", in, got, ok, want)
		}
	}
}

func TestStatusLines(t *testing.T) {
	var got []string
	w := statusLines(func(l string) { got = append(got, l) })
	for _, p := range []string{"noise\n+++ [1121 03:4", "6:04] Generating deepcopy code for 281 targets\n+++ [1121 03:46:04] Call tree\n", "+++ [1121 03:46:05] Starting kube-apiserver\n"} {
		if _, err := fmt.Fprint(w, p); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"Generating deepcopy code for 281 targets", "Starting kube-apiserver"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestShorten(t *testing.T) {
	var d strings.Builder
	for i := range diffFiles + 1 {
		fmt.Fprintf(&d, "diff --git a/f%d.go b/f%d.go\nindex 1..2 100644\n--- a/f%d.go\n+++ b/f%d.go\n@@ -1 +1 @@\n--- removed\n+added\n", i, i, i, i)
	}
	fmt.Fprintf(&d, "diff --git a/last.json b/last.json\n@@ -1 +1 @@\n+%s\n", strings.Repeat("x", 2*diffWidth))
	got := shorten(d.String())
	for _, want := range []string{"  f0.go\n", "      --- removed\n", "      +added\n", "  last.json\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, not := range []string{"index 1..2", "+++ b/f0.go", "xxx"} {
		if strings.Contains(got, not) {
			t.Errorf("%q in\n%s", not, got)
		}
	}

	long := "diff --git a/f.go b/f.go\n@@ -1 +1 @@\n+" + strings.Repeat("x", 2*diffWidth) + strings.Repeat("\n+y", 50)
	got = shorten(long)
	if strings.Count(got, "\n") != diffLines+2 || strings.Contains(got, strings.Repeat("x", diffWidth+1)) {
		t.Errorf("not cut:\n%s", got)
	}
}

func TestRequireAPIPort(t *testing.T) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", apiPort))
	if err == nil {
		defer l.Close()
	} // else somebody has it already, which serves as well
	if err := requireAPIPort(); !progress.IsRefusal(err) || !strings.Contains(err.Error(), "8050") {
		t.Errorf("a port in use: %v, want a refusal", err)
	}
}

// testTree makes a small tree with a base commit and one of the series, and the
// generators' work tree.
func testTree(t *testing.T) (workspace.Workspace, *checkout) {
	t.Helper()
	ctx := context.Background()
	ws := workspace.Workspace{Root: t.TempDir()}
	ws.Work = filepath.Join(ws.Root, "_work")
	repo := gitrepo.Open(ws.Tree(), nil)
	put := func(p, content string) {
		if err := write(filepath.Join(ws.Tree(), p), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) {
		if err := repo.Git(ctx, args...); err != nil {
			t.Fatal(err)
		}
	}
	put(".gitignore", "/_output\n")
	put("pkg/a/types.go", "package a\n")
	put("pkg/a/zz_generated.deepcopy.go", "package a\n")
	put("pkg/a/zz_generated.defaults.go", "package a\n")
	git("init", "--quiet")
	git("add", "--all")
	git("commit", "--quiet", "--message", "base")
	git("update-ref", base.Ref, "HEAD")
	put("pkg/a/types.go", "package a // changed\n")
	git("commit", "--quiet", "--all", "--message", "types")

	c := &checkout{dir: filepath.Join(ws.Work, "codegen"), tree: repo}
	r := progress.New(os.Stderr, "test", ws.Logs())
	if err := r.Run(ctx, progress.Task{Name: "create", Do: c.create}); err != nil {
		t.Fatal(err)
	}
	return ws, c
}

func TestChangesAndCopyBack(t *testing.T) {
	ctx := context.Background()
	ws, c := testTree(t)
	before, err := c.stat(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if paths, diff, err := c.changes(ctx, os.Stderr); err != nil || paths != nil || diff != "" {
		t.Fatalf("pristine: %q %q %v", paths, diff, err)
	}
	// What generators do: write anew, remove, create; and what lies beside.
	put := func(dir, p, content string) {
		if err := write(filepath.Join(dir, p), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(c.dir, "pkg/a/zz_generated.deepcopy.go", "package a // new\n")
	put(c.dir, "pkg/a/types.go", "package a // with protobuf tags\n")
	put(c.dir, "pkg/b/zz_generated.deepcopy.go", "package b\n")
	put(c.dir, "vendor/x/x.proto", "")
	put(c.dir, "hack/tools/go.mod", "")
	if err := os.Remove(filepath.Join(c.dir, "pkg/a/zz_generated.defaults.go")); err != nil {
		t.Fatal(err)
	}
	after, err := c.stat(ctx)
	if err != nil {
		t.Fatal(err)
	}
	res := &Result{written: written(before, after), from: c.dir, tree: c.tree}
	if res.Head, err = c.repo().Rev(ctx, "HEAD"); err != nil {
		t.Fatal(err)
	}
	if res.Changed, res.Diff, err = c.changes(ctx, os.Stderr); err != nil {
		t.Fatal(err)
	}
	want := []string{"pkg/a/types.go", "pkg/a/zz_generated.deepcopy.go", "pkg/a/zz_generated.defaults.go", "pkg/b/zz_generated.deepcopy.go"}
	if !slices.Equal(res.Changed, want) || !strings.Contains(res.Diff, "+package a // new") || !strings.Contains(res.Diff, "+package b") {
		t.Fatalf("changed %q, want %q; diff:\n%s", res.Changed, want, res.Diff)
	}
	if err := res.CopyBack(ctx); err != nil {
		t.Fatal(err)
	}
	if dirty, err := c.tree.Dirty(ctx); err != nil || !slices.Equal(dirty, want) {
		t.Fatalf("the tree has %q, want %q (%v)", dirty, want, err)
	}
	// A second run goes on top of what the first one copied.
	if err := c.refuseDirty(ctx); err != nil {
		t.Errorf("copied files refused: %v", err)
	}
	put(ws.Tree(), "pkg/a/types.go", "package a // by hand\n")
	if err := c.refuseDirty(ctx); !progress.IsRefusal(err) || !strings.Contains(err.Error(), "pkg/a/types.go") {
		t.Errorf("a change by hand: %v, want a refusal", err)
	}

	// The generators agree with HEAD again: the copies are undone.
	if err := c.repo().Git(ctx, "reset", "--quiet", "--hard"); err != nil {
		t.Fatal(err)
	}
	res = &Result{from: c.dir, tree: c.tree, Head: res.Head, written: map[string]bool{"pkg/a/zz_generated.deepcopy.go": true}}
	if err := res.CopyBack(ctx); err != nil {
		t.Fatal(err)
	}
	if !sameFile(filepath.Join(c.dir, "pkg/a/zz_generated.deepcopy.go"), filepath.Join(ws.Tree(), "pkg/a/zz_generated.deepcopy.go")) {
		t.Error("a stale copy stays in the tree")
	}
	res.Head = strings.Repeat("0", 40)
	if err := res.CopyBack(ctx); !progress.IsRefusal(err) {
		t.Errorf("another HEAD: %v, want a refusal", err)
	}
}
