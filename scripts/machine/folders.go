package machine

import (
	"os"
	"path/filepath"
)

// MissingFolders returns the folders that have to be made so that dir exists,
// outermost first.
func MissingFolders(dir string, exists func(string) bool) []string {
	var missing []string
	for d := dir; !exists(d); d = filepath.Dir(d) {
		missing = append([]string{d}, missing...)
	}
	return missing
}

// Exists reports whether there is something at the path.
func Exists(p string) bool {
	_, err := os.Lstat(p)
	return err == nil
}
