// SPDX-License-Identifier: Apache-2.0

package files

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// Tree is the content of a tarball: path in the tarball to file.
type Tree map[string]Member

// Member is a file, a folder or a symbolic link of a tarball. Owner, times and
// order are the same for all tarballs, and not its business.
type Member struct {
	Mode fs.FileMode // permissions; fs.ModeDir and fs.ModeSymlink
	Link string      // where a symbolic link points
	// Capability is the file capability in the form of the kernel; empty: none.
	Capability string

	size int64 // bytes
	open func() (io.ReadCloser, error)
}

// The modes of everything we pack, whatever the umask made of it.
const (
	Program = fs.FileMode(0o755)
	File    = fs.FileMode(0o644)
)

// AddFile adds the file at path.
func (t Tree) AddFile(name, path string, mode fs.FileMode) error {
	fi, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", path)
	}
	t[name] = Member{Mode: mode, size: fi.Size(), open: func() (io.ReadCloser, error) { return os.Open(path) }}
	return nil
}

// AddFiles adds the named files of dir to the folder.
func (t Tree) AddFiles(folder, dir string, names []string) error {
	for _, n := range names {
		if err := t.AddFile(path.Join(folder, n), filepath.Join(dir, n), File); err != nil {
			return err
		}
	}
	return nil
}

// AddOptional is AddFiles for those that are there.
func (t Tree) AddOptional(folder, dir string, names []string) error {
	for _, n := range names {
		if err := t.AddFiles(folder, dir, []string{n}); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// AddBytes adds a file with the content b.
func (t Tree) AddBytes(name string, b []byte) {
	t[name] = Member{Mode: File, size: int64(len(b)), open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(b)), nil
	}}
}

// AddLink adds a symbolic link to a target.
func (t Tree) AddLink(name, target string) {
	t[name] = Member{Mode: fs.ModeSymlink | 0o777, Link: target}
}

// AddFolder adds the regular files below dir, as files that nobody executes.
func (t Tree) AddFolder(name, dir string) error {
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		return t.AddFile(path.Join(name, filepath.ToSlash(rel)), p, File)
	})
}

// WriteTar writes t: sorted, with a folder before what is in it, owned by root,
// dated date.
func (t Tree) WriteTar(ctx context.Context, w io.Writer, date time.Time) error {
	all := Tree{}
	for name, m := range t {
		all[name] = m
		for d := path.Dir(name); d != "."; d = path.Dir(d) {
			if _, ok := t[d]; !ok {
				all[d] = Member{Mode: fs.ModeDir | 0o755}
			}
		}
	}
	out := tar.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		m := all[name]
		h := &tar.Header{Name: name, Mode: int64(m.Mode.Perm()), Size: m.size, ModTime: date, Typeflag: tar.TypeReg}
		switch {
		case m.Mode.IsDir():
			h.Typeflag, h.Name = tar.TypeDir, name+"/"
			if m.Mode&fs.ModeSticky != 0 {
				h.Mode |= 0o1000
			}
		case m.Mode&fs.ModeSymlink != 0:
			h.Typeflag, h.Linkname = tar.TypeSymlink, m.Link
		}
		if m.Capability != "" {
			h.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": m.Capability}
		}
		if err := out.WriteHeader(h); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := m.copyTo(ctx, out); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return out.Close()
}

func (m Member) copyTo(ctx context.Context, w io.Writer) error {
	r, err := m.open()
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(w, readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	}))
	return err
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
