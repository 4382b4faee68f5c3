// SPDX-License-Identifier: Apache-2.0

package check

import (
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
)

func TestSplitOnly(t *testing.T) {
	for text, want := range map[string][2]string{
		"volumebinding":                 {"volumebinding", ""},
		"volumebinding$:TestPack":       {"volumebinding$", "TestPack"},
		"a(?:b|c):^(TestA|TestB)$/^x:y": {"a(?:b|c)", "^(TestA|TestB)$/^x:y"},
		"a(?:b|c)":                      {"a(?:b|c)", ""},
	} {
		packages, tests, err := splitOnly(regexp.MustCompile(text))
		if err != nil || packages.String() != want[0] || tests != want[1] {
			t.Errorf("%s: %s and %q, error %v, want %q", text, packages, tests, err, want)
		}
	}
	if _, _, err := splitOnly(regexp.MustCompile("(a:TestB)")); !run.IsRefusal(err) {
		t.Errorf("error %v, want a refusal of halves that are no expressions", err)
	}
}

func TestSelectTested(t *testing.T) {
	all := []tested{{path: "kubernetes/pkg/a"}, {path: "test-integration/a"}, {path: "test-integration/b"}}
	if some, err := selectTested(all, regexp.MustCompile("a$")); err != nil || len(some) != 2 {
		t.Errorf("%v, error %v, want two", some, err)
	}
	if _, err := selectTested(all, regexp.MustCompile("none")); !run.IsRefusal(err) || !strings.Contains(err.Error(), "below kubernetes, test-integration\n") {
		t.Errorf("error %v, want a refusal that says where packages are", err)
	}
}

func TestRefuseNoTests(t *testing.T) {
	none, some := "ok  \ta\t0.1s [no tests to run]\n", "ok  \tb\t0.1s\n"
	for _, c := range []struct {
		results, tests string
		refused        bool
	}{{none, "", false}, {none, "TestA", true}, {none + some, "TestA", false}, {"", "TestA", true}, {"ok  \tb\t(cached)\n", "TestA", false}} {
		if err := refuseNoTests(c.results, c.tests); run.IsRefusal(err) != c.refused {
			t.Errorf("%q, %q: %v", c.results, c.tests, err)
		}
	}
}

// TestChangedPaths: what is not committed, or not known to git, is a change, too.
func TestChangedPaths(t *testing.T) {
	repo := gitrepo.Open(filepath.Join(workspace.Workspace{Work: t.TempDir()}.Work, "x"), nil)
	testtree.Commit(t, repo, "base", map[string]string{"same.go": "x", "edited.go": "x", "committed.go": "x"})
	if err := repo.Git(t.Context(), "update-ref", base.Ref, "HEAD"); err != nil {
		t.Fatal(err)
	}
	testtree.Commit(t, repo, "one", map[string]string{"committed.go": "y"})
	testtree.Write(t, repo.Dir, map[string]string{"edited.go": "y", "new.go": "y"})
	got, err := changedPaths(t.Context(), repo)
	if want := []string{"committed.go", "edited.go", "new.go"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, error %v, want %q", got, err, want)
	}
}
