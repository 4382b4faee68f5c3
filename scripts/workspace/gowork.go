package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// GoWork is the file that names the modules that a tree compiles against.
const GoWork = "go.work"

// GoWorkFiles are [GoWork] and its sums. No commit of a tree has them.
var GoWorkFiles = []string{GoWork, GoWork + ".sum"}

// HashGoWork is the SHA-256, in hex, of the [GoWorkFiles] in dir. A file that is missing
// counts as empty.
func HashGoWork(dir string) (string, error) {
	hash := sha256.New()
	for _, name := range GoWorkFiles {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(b), b)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
