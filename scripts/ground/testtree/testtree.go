// SPDX-License-Identifier: Apache-2.0

// Package testtree makes the files and repositories of tests.
package testtree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/gitrepo"
)

// Date is that of all commits.
const Date = "2026-01-02T03:04:05Z"

// Write writes files, by their paths below dir. Scripts can be executed.
func Write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path, mode := filepath.Join(dir, name), fs.FileMode(0o644)
		if strings.HasPrefix(content, "#!") {
			mode = 0o755
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), mode)); err != nil {
			t.Fatal(err)
		}
	}
}

// Commit writes files into a repository, which it makes if need be, and commits all that has changed.
func Commit(t *testing.T, repo gitrepo.Repo, message string, files map[string]string) {
	t.Helper()
	Write(t, repo.Dir, files)
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "--all"}, {"commit", "--quiet", "--allow-empty", "--message", message}} {
		if err := repo.GitAt(t.Context(), Date, args...); err != nil {
			t.Fatal(err)
		}
	}
}
