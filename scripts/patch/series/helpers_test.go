// SPDX-License-Identifier: Apache-2.0

package series

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/testtree"
	"capacityv2.internal/scripts/patch/base"
)

const version = "v1.37.2"

// message is a commit message that passes the lint.
func message(subject, class string) string {
	return subject + `

Say why in one sentence. Say in another what a reviewer has to know.

KEP: 5925
Class: ` + class + `
Upstream: not-forwarded: a test
Drop-When: the base contains this change
Proven-By: pkg/a:TestA
`
}

// newTree makes a repository that looks like an assembled base.
func newTree(t *testing.T, files map[string]string) gitrepo.Repo {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	repo := gitrepo.Open(dir, nil)
	git(t, repo, "init", "--quiet", "--initial-branch="+base.Branch)
	commit(t, repo, "base", files)
	git(t, repo, "update-ref", base.Ref, "HEAD")
	git(t, repo, "update-ref", base.ExportedRef, "HEAD")
	git(t, repo, "config", "--local", "capacityv2.base", version+" from modules")
	return repo
}

func git(t *testing.T, repo gitrepo.Repo, args ...string) {
	t.Helper()
	if err := repo.GitAt(context.Background(), testtree.Date, args...); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	testtree.Write(t, dir, map[string]string{name: content})
}

func commit(t *testing.T, repo gitrepo.Repo, msg string, files map[string]string) {
	t.Helper()
	testtree.Commit(t, repo, msg, files)
}

// exported makes a tree with two patches and their files in a folder.
func exported(t *testing.T) (gitrepo.Repo, string) {
	t.Helper()
	repo := newTree(t, map[string]string{"pkg/a/a.go": numbered("one"), "pkg/b/b.go": "package b\n"})
	commit(t, repo, message("a: change the middle", "feature"), map[string]string{
		"pkg/a/a.go": strings.Replace(numbered("one"), "line 20", "line twenty", 1),
	})
	commit(t, repo, message("b: add a function", "feature"), map[string]string{"pkg/b/b.go": "package b\n\nfunc B() {}\n"})
	dir := filepath.Join(t.TempDir(), "patches")
	if _, err := export(t, repo, dir); err != nil {
		t.Fatal(err)
	}
	return repo, dir
}

// export writes the commits of a tree as patch files.
func export(t *testing.T, repo gitrepo.Repo, dir string) ([]string, error) {
	t.Helper()
	return exportFor(t, repo, dir, version, rules)
}

func exportFor(t *testing.T, repo gitrepo.Repo, dir, version string, rules Rules) (changed []string, err error) {
	t.Helper()
	err = step(t, func(ctx context.Context, s *run.Step) error {
		e, err := Prepare(ctx, repo, dir, version, rules, s)
		if err == nil {
			changed, err = e.Write(ctx, repo, dir)
		}
		return err
	})
	return changed, err
}

// numbered is a file of forty distinct lines.
func numbered(tag string) string {
	var b strings.Builder
	b.WriteString("package a\n")
	for i := range 40 {
		b.WriteString("// " + tag + " line " + string(rune('0'+i/10)) + string(rune('0'+i%10)) + "\n")
	}
	return b.String()
}

// step runs f as a step that prints nowhere.
func step(t *testing.T, f func(context.Context, *run.Step) error) error {
	t.Helper()
	r := run.NewReporter(&strings.Builder{}, "test", t.TempDir())
	return r.Run(context.Background(), run.Task{Name: "step", Do: f})
}

// wantRefusal wants err to be a refusal that holds each of the texts.
func wantRefusal(t *testing.T, err error, texts ...string) {
	t.Helper()
	if !run.IsRefusal(err) {
		t.Fatalf("got error %v, want a refusal", err)
	}
	for _, s := range texts {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("the refusal lacks %q:\n%v", s, err)
		}
	}
}

func apply(t *testing.T, repo gitrepo.Repo, dir string) error {
	t.Helper()
	return step(t, func(ctx context.Context, s *run.Step) error { return Apply(ctx, repo, dir, s) })
}

func reset(t *testing.T, repo gitrepo.Repo) {
	t.Helper()
	git(t, repo, "reset", "--quiet", "--hard", base.Ref)
	git(t, repo, "update-ref", base.ExportedRef, base.Ref)
}

func head(t *testing.T, repo gitrepo.Repo) string {
	t.Helper()
	h, err := repo.Rev(context.Background(), "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	return h
}
