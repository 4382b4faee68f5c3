// SPDX-License-Identifier: Apache-2.0

package base

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// assemble writes the tree of a Kubernetes version into dst, from Go modules. It returns
// them.
//
// The module zips lack what a git checkout has: symbolic links (the root
// Makefile is restored, as the release and the OpenAPI scripts call make),
// execute bits (restored for files that start with #!), and nested modules
// (hack/tools, which code generation replaces). The zip's vendor/ holds only
// OWNERS; it is removed, because the go command would take it for a vendor folder.
func assemble(ctx context.Context, o Options, dst string, log io.Writer) (modules, error) {
	m, err := modulesOf(ctx, o, log)
	if err != nil {
		return m, err
	}
	if err := copyTree(ctx, m.main.Dir, dst); err != nil || !o.Staging {
		return m, err
	}
	for _, staging := range m.staging {
		to := filepath.Join(dst, "staging", "src", filepath.FromSlash(staging.Path))
		if err := os.RemoveAll(to); err != nil {
			return m, err
		}
		if err := copyTree(ctx, staging.Dir, to); err != nil {
			return m, err
		}
	}
	if err := os.RemoveAll(filepath.Join(dst, "vendor")); err != nil {
		return m, err
	}
	return m, os.Symlink("build/root/Makefile", filepath.Join(dst, "Makefile"))
}

// copyTree copies the files below src; a file that starts with #! becomes
// executable, everything else not.
func copyTree(ctx context.Context, src, dst string) error {
	return filepath.WalkDir(src, func(p string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		rel, err := filepath.Rel(src, p)
		if err != nil {
			return err
		}
		to := filepath.Join(dst, rel)
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if bytes.HasPrefix(b, []byte("#!")) {
			mode = 0o755
		}
		return os.WriteFile(to, b, mode)
	})
}
