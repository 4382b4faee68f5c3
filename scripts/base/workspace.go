package base

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

const workspaceFile = "go.work"

// addWorkspace copies the go.work and the go.work.sum of a folder to the tree, where
// git ignores them. Without them, the go command would take the go.work of our
// repository, which does not name the tree. Files that are the same stay as they are.
func addWorkspace(tree, folder string) error {
	for _, name := range []string{workspaceFile, workspaceFile + ".sum"} {
		b, err := os.ReadFile(filepath.Join(folder, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		to := filepath.Join(tree, name)
		if old, err := os.ReadFile(to); err == nil && bytes.Equal(old, b) {
			continue
		}
		if err := os.WriteFile(to, b, 0o644); err != nil {
			return err
		}
	}
	return nil
}
