// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"embed"
	"io/fs"
	"slices"
	"strings"

	"capacityv2.internal/scripts/ground/files"
)

//go:embed *.go
var code embed.FS

// Hash stands for the code of this package: how the Go command is run.
func Hash() (string, error) { return SourceHash(code) }

// SourceHash returns a hash of the Go files of a package, without its tests.
func SourceHash(code embed.FS) (string, error) {
	names, err := fs.Glob(code, "*.go")
	if err != nil {
		return "", err
	}
	return files.Hash(code, slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") })...)
}
