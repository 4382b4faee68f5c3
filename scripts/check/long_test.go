// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"slices"
	"testing"

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
