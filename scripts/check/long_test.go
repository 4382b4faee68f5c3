// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/testtree"
	"capacityv2.internal/scripts/ground/workspace"
)

// TestInterrupted: what an interrupt leaves out has not passed.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ws := workspace.Workspace{Root: t.TempDir(), Out: t.Output()}
	if err := everywhere(ctx, ws, e2eOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the interrupt", err)
	}
}

func TestSelectSteps(t *testing.T) {
	all := []run.Task{{Name: "fuzz tests"}, {Name: "a without the change: stock"}, {Name: "b without the change: gate-off"}}
	some, err := selectSteps(all, regexp.MustCompile("without the change"))
	if err != nil || len(some) != 2 || some[0].Name != all[1].Name || some[1].Name != all[2].Name {
		t.Errorf("got %v, error %v, want the last two", some, err)
	}
	if _, err := selectSteps(all, regexp.MustCompile("^c")); err == nil || !strings.Contains(err.Error(), "fuzz tests\n") || !strings.Contains(err.Error(), all[2].Name) {
		t.Errorf("error %v, want the names of all steps", err)
	}
}

func TestFuzzTests(t *testing.T) {
	tree := t.TempDir()
	testtree.Write(t, tree, map[string]string{
		"a/a_test.go": "package a\n\nfunc FuzzA(f *testing.F) {\n}\n\nfunc TestA(t *testing.T) {}\n\nfunc FuzzB(f *testing.F) {}\n",
		"a/a.go":      "package a\n\nfunc FuzzNot(f *testing.F) {}\n",
	})
	got, err := fuzzTests(tree, []string{"a/a.go", "a/a_test.go", "a/removed_test.go"})
	if want := []fuzzTest{{"a", "FuzzA"}, {"a", "FuzzB"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, error %v, want %v", got, err, want)
	}
	if got, err := fuzzTests(tree, []string{"a/a.go"}); err == nil {
		t.Errorf("no error without a fuzz test, but %v", got)
	}
}
