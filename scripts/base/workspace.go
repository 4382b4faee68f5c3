package base

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"capacityv2.internal/scripts/files"
	"capacityv2.internal/scripts/workspace"
)

// addWorkspace copies the go.work and the go.work.sum of a folder to the tree, where
// git ignores them. Without them, the go command would take the go.work of our
// repository, which does not name the tree. Files that are the same stay as they are.
func addWorkspace(tree, folder string) error {
	for _, name := range workspace.GoWorkFiles {
		b, err := os.ReadFile(filepath.Join(folder, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if _, err := files.Update(filepath.Join(tree, name), b); err != nil {
			return err
		}
	}
	return nil
}
