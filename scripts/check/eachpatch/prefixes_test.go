// SPDX-License-Identifier: Apache-2.0

package eachpatch

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

// TestPrefixes verifies two patches three times: they are remembered, but not once
// a tree or its packages are other ones, and not if they fail.
func TestPrefixes(t *testing.T) {
	ctx := t.Context()
	repo := gitrepo.Open(filepath.Join(t.TempDir(), "tree"), nil)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, content string) {
		t.Helper()
		testtree.Write(t, repo.Dir, map[string]string{name: content})
		must(repo.Git(ctx, "add", "--all"))
	}
	commit := func(subject, name, content string) {
		t.Helper()
		testtree.Commit(t, repo, subject, map[string]string{name: content})
	}
	commit("base", "go.mod", "module x\n\ngo 1.26\n")
	must(repo.Git(ctx, "update-ref", base.Ref, "HEAD"))
	commit("one", "a/a.go", "package a\n\nfunc A() int { return 1 }\n")
	commit("two", "b/b.go", "package b\n")

	dir, record := filepath.Join(t.TempDir(), "prefix"), filepath.Join(t.TempDir(), "verified")
	logs := t.TempDir()
	chosen := func(int) bool { return true }
	verify := func() (string, error) {
		var out strings.Builder
		err := run.NewReporter(&out, "verify", logs).Run(ctx, run.Task{Name: "prefixes", Do: func(ctx context.Context, s *run.Step) error {
			rec, err := openRecord(ctx, record)
			must(err)
			return eachPrefix(ctx, repo, checker{dir: dir, record: rec}, chosen, s)
		}})
		return out.String(), err
	}
	expect := func(wanted ...string) {
		t.Helper()
		out, err := verify()
		must(err)
		for _, w := range wanted {
			if !strings.Contains(out, w) {
				t.Errorf("output lacks %q:\n%s", w, out)
			}
		}
	}
	expect("1/2 one (1 packages)", "2/2 two (1 packages)")
	expect("1/2 one: verified before", "2/2 two: verified before", "2 of 2 were verified before")

	write("b/b.go", "package b\n\nvar B = 1\n")
	must(repo.Git(ctx, "commit", "--quiet", "--amend", "--no-edit"))
	expect("1/2 one: verified before", "2/2 two (1 packages)", "1 of 2 were verified before")

	write("b/b.go", "package b\n\nvar B = undefined\n")
	must(repo.Git(ctx, "commit", "--quiet", "--amend", "--no-edit"))
	chosen = func(i int) bool { return i == 0 }
	expect("1/2 one: verified before", "1 of 1 were verified before")
	chosen = func(int) bool { return true }
	for range 2 {
		if out, err := verify(); err == nil || !strings.Contains(err.Error(), `patch 2 of the series, "two": it does not build`) {
			t.Errorf("a patch that does not build: error %v\n%s", err, out)
		}
	}

	write("b/b.go", "package b\n")
	write("b/b_test.go", "package b\n\nimport (\n\t\"strings\"\n\t\"testing\"\n)\n\nfunc TestB(t *testing.T) { t.Error(strings.Repeat(\"wrong\\n\", 100)) }\n")
	must(repo.Git(ctx, "commit", "--quiet", "--amend", "--no-edit"))
	_, err := verify()
	log := filepath.Join(logs, "verify", "01-prefixes-prefix-2.log")
	for _, wanted := range []string{log, "--- FAIL: TestB"} {
		if err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("a patch whose test fails: error %v, want it to name %s", err, wanted)
		}
	}
	content, err := os.ReadFile(log)
	must(err)
	if got := string(content); !strings.HasPrefix(got, "# 2/2 two\n") || strings.Count(got, "--- FAIL: TestB") != 1 {
		t.Errorf("the log does not begin with the patch, or has not its result once:\n%s", got)
	}
}

func TestRecord(t *testing.T) {
	r := record{t.TempDir(), "checks"}
	if r.has("tree", "./a") {
		t.Error("a new record has something")
	}
	if err := r.add("tree", "./a"); err != nil {
		t.Fatal(err)
	}
	if !r.has("tree", "./a") {
		t.Error("the record has not what was added")
	}
	for name, has := range map[string]bool{
		"tree":     r.has("other", "./a"),
		"packages": r.has("tree", "./a", "./b"),
		"checks":   record{r.dir, "other"}.has("tree", "./a"),
	} {
		if has {
			t.Errorf("other %s are taken for the ones that were added", name)
		}
	}
	opened, err := openRecord(t.Context(), r.dir)
	if err != nil || !strings.Contains(opened.checks, "go1.") {
		t.Errorf("checks %q, error %v", opened.checks, err)
	}
	if other, err := openRecord(t.Context(), r.dir, "another tree"); err != nil || other.checks == opened.checks {
		t.Errorf("with another tree, the checks are the same, error %v", err)
	}
}
