package node

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPauseImage(t *testing.T) {
	tree := t.TempDir()
	dir := filepath.Join(tree, "build", "pause")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte("IMAGE = x\nTAG ?= 3.10.2\nREV = 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := PauseImage(tree); err != nil || got != "registry.k8s.io/pause:3.10.2" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte("VERSION = 3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := PauseImage(tree); err == nil {
		t.Error("a Makefile without a tag passed")
	}
}
