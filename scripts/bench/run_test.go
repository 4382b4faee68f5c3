package bench

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMeasure sees that a pattern that matches no benchmark, with which the go command is
// content, is an error.
func TestMeasure(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":    "module x\n\ngo 1.26\n",
		"x_test.go": "package x\n\nimport \"testing\"\n\nfunc BenchmarkX(b *testing.B) {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := Run{Name: "x", Package: ".", Bench: "^BenchmarkX$", Args: []string{"-benchtime", "1x"}}
	measured, err := run.Measure(t.Context(), "v1", dir, nil, io.Discard)
	if err != nil || !strings.HasPrefix(string(measured), "version: v1\ngo: go1.") || !strings.Contains(string(measured), "\nBenchmarkX") {
		t.Errorf("measured %q, error %v", measured, err)
	}
	run.Bench = "^BenchmarkRenamed$"
	if measured, err := run.Measure(t.Context(), "v1", dir, nil, io.Discard); err == nil || !strings.Contains(err.Error(), run.Bench) {
		t.Errorf("no benchmark matches: measured %q, error %v, want one that names the pattern", measured, err)
	}
}
