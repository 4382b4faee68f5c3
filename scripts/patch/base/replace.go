// SPDX-License-Identifier: Apache-2.0

package base

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"

	"capacityv2.internal/scripts/ground/gitrepo"
)

// Repin makes the pin folder require the version of the options, with the sums of all
// modules of its tree as the go command has checked them.
func Repin(ctx context.Context, o Options, log io.Writer) error {
	m, err := modulesOf(ctx, o, log)
	if err != nil {
		return err
	}
	file := filepath.Join(o.Pin, "go.mod")
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	f, err := modfile.Parse(file, b, nil)
	if err != nil {
		return err
	}
	if o.Staging {
		// A new version may have other modules.
		for _, r := range f.Require {
			if err := f.DropRequire(r.Mod.Path); err != nil {
				return err
			}
		}
		f.Cleanup()
	}
	var sums strings.Builder
	for _, m := range append([]downloaded{m.main}, m.staging...) {
		if err := f.AddRequire(m.Path, m.Version); err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%[1]s %[2]s %[3]s\n%[1]s %[2]s/go.mod %[4]s\n", m.Path, m.Version, m.Sum, m.GoModSum)
	}
	if b, err = f.Format(); err != nil {
		return err
	}
	if err := os.WriteFile(file, b, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.Pin, "go.sum"), []byte(sums.String()), 0o644)
}

// Replace puts the repository at from, which may borrow objects of the one at to, in
// the place of that, and removes work trees beside it that belong to the old one.
func Replace(ctx context.Context, from, to string, log io.Writer) error {
	objects := filepath.Join(".git", "objects")
	if err := linkMissing(filepath.Join(to, objects), filepath.Join(from, objects)); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(from, objects, "info", "alternates")); err != nil {
		return err
	}
	trees, err := gitrepo.Open(to, log).Lines(ctx, "worktree", "list", "--porcelain")
	if err != nil {
		return err
	}
	for _, line := range trees {
		// The repository itself is among them. Those elsewhere belong to a checkout that this
		// one was copied from.
		if dir, ok := strings.CutPrefix(line, "worktree "); ok && filepath.Dir(dir) == filepath.Dir(to) {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
	}
	return os.Rename(from, to)
}

// linkMissing gives dst the files that only src has.
func linkMissing(src, dst string) error {
	return filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		to := filepath.Join(dst, rel)
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		if err := os.Link(path, to); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	})
}
