package central

import (
	"os"
	"path/filepath"
	"testing"
)

// writePart leaves a part of docs/benchmarks/provisioner.md where make bench SUITE=provisioner finds it, and
// in the log.
func writePart(tb testing.TB, name, text string) {
	tb.Helper()
	tb.Log("\n" + text)
	folder := os.Getenv("PROVISIONER_REPORT")
	if folder == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(folder, name+".md"), []byte(text), 0o644); err != nil {
		tb.Fatal(err)
	}
}
