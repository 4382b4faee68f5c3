package toolchain

import (
	"path/filepath"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/run"
)

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
	w := results(&out)
	for _, part := range []string{"=== RUN Test", "A\nok  \tpkg/a\t1", ".0s\nnoise\n    --- FAIL: TestB/c (0s)\n--- SKIP: TestC (0s)\n", "FAIL\tpkg/b", "\t2s"} {
		if _, err := w.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	w.Flush()
	if want := "ok  \tpkg/a\t1.0s\n    --- FAIL: TestB/c (0s)\n--- SKIP: TestC (0s)\nFAIL\tpkg/b\t2s\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
