package toolchain

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed *.go
var code embed.FS

// Hash stands for the code of this package: how the Go command is run.
func Hash() (string, error) { return SourceHash(code) }

// SourceHash returns a hash of the files of a package, without its tests.
func SourceHash(files embed.FS) (string, error) {
	h := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := files.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(content), content)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}
