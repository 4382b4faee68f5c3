// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

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
	for name, content := range map[string]string{
		"a/a_test.go": "package a\n\nfunc FuzzA(f *testing.F) {\n}\n\nfunc TestA(t *testing.T) {}\n\nfunc FuzzB(f *testing.F) {}\n",
		"a/a.go":      "package a\n\nfunc FuzzNot(f *testing.F) {}\n",
	} {
		if err := os.MkdirAll(filepath.Join(tree, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tree, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := fuzzTests(tree, []string{"a/a.go", "a/a_test.go", "a/removed_test.go"})
	if want := []fuzzTest{{"a", "FuzzA"}, {"a", "FuzzB"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, error %v, want %v", got, err, want)
	}
	if got, err := fuzzTests(tree, []string{"a/a.go"}); err == nil {
		t.Errorf("no error without a fuzz test, but %v", got)
	}
}
