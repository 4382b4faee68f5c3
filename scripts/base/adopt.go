package base

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"

	"capacityv2.internal/scripts/gitrepo"
)

// Repin makes the pin folder require the version of the options, with the sums of all
// modules of its tree as the go command has checked them.
func Repin(ctx context.Context, o Options, log io.Writer) error {
	main, staging, err := modulesOf(ctx, o, log)
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
	for _, m := range append([]downloaded{main}, staging...) {
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
// the place of that, and removes work trees that belong to the old one.
func Replace(ctx context.Context, from, to string, log io.Writer) error {
	repo, old := gitrepo.Open(from, log), gitrepo.Open(to, log)
	if err := repo.Git(ctx, "repack", "-a", "-d", "--quiet"); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(from, ".git", "objects", "info", "alternates")); err != nil {
		return err
	}
	trees, err := old.Lines(ctx, "worktree", "list", "--porcelain")
	if err != nil {
		return err
	}
	for _, line := range trees {
		// The repository itself is among them.
		if dir, ok := strings.CutPrefix(line, "worktree "); ok {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
	}
	return os.Rename(from, to)
}
