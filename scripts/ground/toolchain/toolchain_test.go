// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/run"
)

// TestGoOfTree: what upstream builds with a later Go gets that, and what is not below such a tree does not.
func TestGoOfTree(t *testing.T) {
	for content, want := range map[string][]string{"99.1.2\n": {"GOTOOLCHAIN=go99.1.2"}, strings.TrimPrefix(GoVersion, "go"): nil, "1.20.1": nil} {
		tree := t.TempDir()
		if err := os.WriteFile(filepath.Join(tree, VersionFile), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := InTree(filepath.Join(tree, "pkg", "a")); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", content, got, want)
		}
	}
	if got := InTree(t.TempDir()); got != nil {
		t.Errorf("outside of a tree: %q", got)
	}
}

func TestRequireDisk(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "not", "there")
	if err := RequireDisk(missing, 0); err != nil {
		t.Error(err)
	}
	if err := RequireDisk(missing, 1<<40); !run.IsRefusal(err) {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestResults(t *testing.T) {
	var out strings.Builder
	w := results(&out, true)
	for _, part := range []string{"=== RUN Test", "A\nok  \tpkg/a\t1", ".0s\nnoise\n    --- FAIL: TestB/c (0s)\n        b_test.go:7: FATAL ERROR: I1129]\n            \tgot 2\n        server.go:9: I1129 noise\n            \tnoise\n--- SKIP: TestC (0s)\n", "FAIL\tpkg/b", "\t2s"} {
		if _, err := w.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	w.Flush()
	if want := "ok  \tpkg/a\t1.0s\n    --- FAIL: TestB/c (0s)\n        b_test.go:7: FATAL ERROR: I1129]\n            \tgot 2\n--- SKIP: TestC (0s)\nFAIL\tpkg/b\t2s\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
