// SPDX-License-Identifier: Apache-2.0

package eachpatch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/testtree"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch/base"
	"capacityv2.internal/scripts/patch/series"
)

// TestProve has a series of small patches, each with its own fault.
func TestProve(t *testing.T) {
	ctx := t.Context()
	repo := gitrepo.Open(filepath.Join(t.TempDir(), "tree"), nil)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	test := func(name, expression string) string {
		return "package a\n\nimport \"testing\"\n\nfunc " + name + "(t *testing.T) {\n\tt.Run(\"sub\", func(t *testing.T) {\n\t\tif !(" + expression + ") {\n\t\t\tt.Fatal()\n\t\t}\n\t})\n}\n"
	}

	testtree.Commit(t, repo, "base", map[string]string{"go.mod": "module x\n\ngo 1.26\n", "a/a.go": "package a\n\nvar A = 1\n"})
	must(repo.Git(ctx, "update-ref", base.Ref, "HEAD"))

	var patches []series.Patch
	want := map[string]verdict{}
	add := func(subject, class, test string, expected verdict, files map[string]string) {
		t.Helper()
		testtree.Commit(t, repo, subject, files)
		patches = append(patches, series.Patch{Name: subject, Subject: subject, Trailers: map[string][]string{"Class": {class}, "Proven-By": {"./" + map[bool]string{false: "a", true: "f"}[test == "TestF"] + ":" + test}}})
		want[subject] = expected
	}
	add("changes", "feature", "TestA/sub", failsWithout, map[string]string{"a/a.go": "package a\n\nvar A = 2\n", "a/a_test.go": test("TestA", "A == 2")})
	add("adds", "perf", "TestB", doesNotCompile, map[string]string{"a/b.go": "package a\n\nvar B = 2\n", "a/b_test.go": test("TestB", "B == 2")})
	add("is not needed", "fix", "TestB", passesWithout, map[string]string{"a/b.go": "package a\n\nvar B = 1 + 1\n"})
	add("needs another", "fix", "TestB", failsWithout, map[string]string{"a/b.go": "package a\n\nvar B = 3\n", "a/b_test.go": test("TestB", "B == 3")})
	add("stands alone", "fix", "TestF", doesNotCompile, map[string]string{"f/f.go": "package f\n\nvar F = 1\n", "f/f_test.go": strings.Replace(test("TestF", "F == 1"), "package a", "package f", 1)})
	add("comes too early", "feature", "TestD", missing, map[string]string{"a/c.go": "package a\n\nvar D = 1\n"})
	add("has a test for something", "test", "TestD", "", map[string]string{"a/d_test.go": test("TestD", "D == 1")})
	add("does not work", "feature", "TestE", failsWith, map[string]string{"a/e.go": "package a\n\nvar E = 1\n", "a/e_test.go": test("TestE", "E == 2")})

	prover := &prover{tree: repo, dir: filepath.Join(t.TempDir(), "prove"), patches: len(patches), record: record{t.TempDir(), "checks"}}
	plan := &Plan{}
	reporter := run.NewReporter(&strings.Builder{}, "prove", t.TempDir())
	must(reporter.Run(ctx, run.Task{Name: "work tree", Do: prover.prepare}))
	for _, c := range casesOf(patches) {
		if !c.provable() {
			if why, err := c.reason(ctx, repo); err != nil || why != "class test: a:TestD is there" || want[c.Patch.Name] != "" {
				t.Errorf("the patch that %s is left out: %q, error %v", c.Patch.Name, why, err)
			}
			c.Test = "TestGone"
			if why, err := c.reason(ctx, repo); !run.IsRefusal(err) {
				t.Errorf("its test is not there: %q, error %v", why, err)
			}
			continue
		}
		must(reporter.Run(ctx, run.Task{Name: c.Patch.Name, Do: func(ctx context.Context, s *run.Step) error {
			got, err := prover.prove(ctx, c, s)
			if got != want[c.Patch.Name] {
				t.Errorf("the patch that %s: %q, want %q", c.Patch.Name, got, want[c.Patch.Name])
			}
			return err
		}}))
		if c.standsAlone() {
			must(reporter.Run(ctx, run.Task{Name: c.Patch.Name + " alone", Do: func(ctx context.Context, s *run.Step) error {
				for _, wantKnown := range []bool{false, c.Patch.Name == "stands alone"} {
					got, known, err := prover.alone(ctx, c, s)
					if want := map[string]verdict{"needs another": doesNotApply, "is not needed": doesNotApply, "stands alone": doesNotCompile}[c.Patch.Name]; known != wantKnown || !known && got != want || known && !got.proven() {
						t.Errorf("the patch that %s, alone: %q, known: %t, want %q, known: %t", c.Patch.Name, got, known, want, wantKnown)
					}
					if err != nil {
						return err
					}
				}
				return plan.proveAlone(ctx, prover, c, "x", s)
			}}))
		}
		for range map[string]int{"changes": 2, "comes too early": 1}[c.Patch.Name] {
			must(reporter.Run(ctx, run.Task{Name: c.Patch.Name, Do: func(ctx context.Context, s *run.Step) error { return plan.prove(ctx, prover, c, "x", s) }}))
		}
	}
	proven, err := plan.proven, reporter.Run(ctx, run.Task{Name: "are all of them needed?", Do: plan.judge})
	if wrong := `x comes too early: a:TestD IS NOT THERE AFTER IT; it comes with "has a test for something" (log: `; proven != 2 || !strings.Contains(fmt.Sprint(err), "x needs another: alone on the base, it DOES NOT APPLY (log: ") || strings.Contains(fmt.Sprint(err), "stands alone") || plan.known != 1 || !run.IsRefusal(err) || !strings.Contains(err.Error(), wrong) {
		t.Errorf("%d proven, error %v, want one that is remembered, and %q", proven, err, wrong)
	}
}

// TestSelection: a pattern has to match, and a change counts from the moment when it is exported.
func TestSelection(t *testing.T) {
	ws := workspace.Workspace{Root: t.TempDir()}
	if err := os.CopyFS(filepath.Join(ws.Root, "patches", "csi-spec"), os.DirFS(filepath.Join("..", "..", "..", "patches", "csi-spec"))); err != nil {
		t.Fatal(err)
	}
	for pattern, refusal := range map[string]string{"": "", "^0001-": "", "^0002-": `no patch matches "^0002-"`} {
		selected, err := Matching(ws, regexp.MustCompile(pattern))
		if refusal != "" {
			if !run.IsRefusal(err) || !strings.Contains(err.Error(), refusal) {
				t.Errorf("%q: error %v, want %q", pattern, err, refusal)
			}
			continue
		}
		plan, err2 := NewPlan(ws, selected)
		if err != nil || err2 != nil || len(plan.Tasks) < 3 {
			t.Errorf("%q: %+v, errors %v and %v", pattern, plan, err, err2)
		}
	}

	repo := gitrepo.Open(ws.Root, nil)
	var patches []string
	changed := func(want ...string) {
		t.Helper()
		selected, err := Changed(t.Context(), ws)
		var got []string
		for _, name := range patches {
			if selected("csi-spec", name) {
				got = append(got, name)
			}
		}
		if err != nil || !slices.Equal(got, want) || selected("kubernetes", patches[0]) && len(want) < len(patches) {
			t.Errorf("changed: %q, error %v, want %q", got, err, want)
		}
	}
	all, err := series.Read(filepath.Join(ws.Root, "patches", "csi-spec"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		patches = append(patches, p.Name)
	}
	patches = append(patches, "0099-new.patch")
	testtree.Commit(t, repo, "one", nil)
	changed(patches...) // nothing to compare with
	testtree.Commit(t, repo, "two", nil)
	changed()
	testtree.Write(t, filepath.Join(ws.Root, "patches", "csi-spec"), map[string]string{patches[0]: "x", "0099-new.patch": "x"})
	changed(patches[0], "0099-new.patch")
	testtree.Commit(t, repo, "three", nil)
	changed(patches[0], "0099-new.patch")
	testtree.Commit(t, repo, "four", nil)
	changed()
}

func TestIsTest(t *testing.T) {
	for path, want := range map[string]bool{
		"pkg/a/a.go": false, "pkg/a/a_test.go": true, "pkg/a/test_utils.go": true, "pkg/a/testdata/x.json": true, "test/integration/a/a.go": true, "pkg/test/a.go": false,
	} {
		if got := isTest(path); got != want {
			t.Errorf("isTest(%s) is %t", path, got)
		}
	}
}
