// SPDX-License-Identifier: Apache-2.0

package base

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/workspace"
)

// UpdateGoMod makes the go.mod in dir, and the go.sum beside it, name the versions that pin has
// of the modules that were before.
func UpdateGoMod(dir, pin string, before []module.Version) error {
	pinned, err := Pinned(pin)
	if err != nil {
		return err
	}
	after := map[module.Version]string{} // the new version, "" if the module is gone
	for _, b := range before {
		after[b] = ""
		for _, p := range pinned {
			if p.Path == b.Path {
				after[b] = p.Version
			}
		}
	}
	if err := updateRequirements(filepath.Join(dir, "go.mod"), after); err != nil {
		return err
	}
	return updateSums(filepath.Join(dir, "go.sum"), filepath.Join(pin, "go.sum"), after)
}

func updateRequirements(path string, after map[module.Version]string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := modfile.Parse(path, b, nil)
	if err != nil {
		return err
	}
	for _, r := range f.Require {
		if version := after[r.Mod]; version != "" {
			err = errors.Join(err, f.AddRequire(r.Mod.Path, version))
		}
	}
	for _, r := range f.Replace {
		switch version, known := after[r.New]; {
		case version != "":
			err = errors.Join(err, f.AddReplace(r.Old.Path, r.Old.Version, r.New.Path, version))
		case known:
			err = errors.Join(err, f.DropReplace(r.Old.Path, r.Old.Version))
		}
	}
	if err != nil {
		return err
	}
	f.Cleanup()
	if b, err = f.Format(); err != nil {
		return err
	}
	_, err = files.Update(path, b)
	return err
}

// updateSums takes the sums of new versions from the file sums.
func updateSums(path, sums string, after map[module.Version]string) error {
	old, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	pinned, err := os.ReadFile(sums)
	if err != nil {
		return err
	}
	lines := map[string]string{} // by what is before the sum
	for line := range strings.Lines(string(pinned)) {
		lines[line[:strings.LastIndex(line, " ")]] = line
	}
	var b strings.Builder
	for line := range strings.Lines(string(old)) {
		f := strings.Fields(line)
		version, suffix, isGoMod := strings.Cut(f[1], "/")
		if isGoMod {
			suffix = "/" + suffix
		}
		if newer, known := after[module.Version{Path: f[0], Version: version}]; known {
			line = lines[f[0]+" "+newer+suffix] // none if the module is gone
		}
		b.WriteString(line)
	}
	_, err = files.Update(path, []byte(b.String()))
	return err
}

// UpdateGoWork makes the go.work of the repository at root use the staging modules of the
// tree, which is below it, and no others of that, and the language that the tree has.
func UpdateGoWork(root, tree string) error {
	names, err := stagingModules(tree)
	if err != nil {
		return err
	}
	of, err := readWork(tree)
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(root, tree)
	if err != nil {
		return err
	}
	prefix := "./" + filepath.ToSlash(rel) + strings.TrimPrefix(stagingPrefix, ".")
	return editWork(root, func(f *modfile.WorkFile) (err error) {
		if of.Go != nil {
			err = f.AddGoStmt(of.Go.Version)
		}
		for _, g := range of.Godebug {
			err = errors.Join(err, f.AddGodebug(g.Key, g.Value))
		}
		for _, u := range f.Use {
			if n, ok := strings.CutPrefix(u.Path, prefix); ok && !slices.Contains(names, n) {
				err = errors.Join(err, f.DropUse(u.Path))
			}
		}
		for _, n := range names {
			err = errors.Join(err, f.AddUse(prefix+n, ""))
		}
		return err
	})
}

// editWork changes the go.work of a folder.
func editWork(dir string, edit func(*modfile.WorkFile) error) error {
	f, err := readWork(dir)
	if err != nil {
		return err
	}
	if err := edit(f); err != nil {
		return err
	}
	f.Cleanup()
	_, err = files.Update(filepath.Join(dir, workspace.GoWork), modfile.Format(f.Syntax))
	return err
}

// readWork reads the go.work of a folder.
func readWork(dir string) (*modfile.WorkFile, error) {
	path := filepath.Join(dir, workspace.GoWork)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return modfile.ParseWork(path, b, nil)
}
