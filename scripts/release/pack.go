package release

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/pgzip"
)

// Artefact is one file of a release.
type Artefact struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"` // bytes
}

// tree is the content of a tarball: path in the tarball to file.
type tree map[string]member

// member is a file, a folder or a symbolic link of a tarball. Owner, times and
// order are the same for all tarballs, and not its business.
type member struct {
	mode fs.FileMode // permissions; fs.ModeDir and fs.ModeSymlink
	link string      // where a symbolic link points
	size int64
	open func() (io.ReadCloser, error)
	// capability is the file capability in the form of the kernel; empty: none.
	capability string
}

// The modes of everything we pack, whatever the umask made of it.
const (
	modeProgram = fs.FileMode(0o755)
	modeFile    = fs.FileMode(0o644)
)

// addFile adds the file at path.
func (t tree) addFile(name, path string, mode fs.FileMode) error {
	fi, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", path)
	}
	t[name] = member{mode: mode, size: fi.Size(), open: func() (io.ReadCloser, error) { return os.Open(path) }}
	return nil
}

// addFiles adds the named files of dir to the folder.
func (t tree) addFiles(folder, dir string, names []string) error {
	for _, n := range names {
		if err := t.addFile(path.Join(folder, n), filepath.Join(dir, n), modeFile); err != nil {
			return err
		}
	}
	return nil
}

// addOptional is addFiles for those that are there.
func (t tree) addOptional(folder, dir string, names []string) error {
	for _, n := range names {
		if err := t.addFiles(folder, dir, []string{n}); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// addBytes adds a file with the content b.
func (t tree) addBytes(name string, b []byte) {
	t[name] = member{mode: modeFile, size: int64(len(b)), open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(b)), nil
	}}
}

// addFolder adds the regular files below dir, as files that nobody executes.
func (t tree) addFolder(name, dir string) error {
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		return t.addFile(path.Join(name, filepath.ToSlash(rel)), p, modeFile)
	})
}

// writeTar writes t: sorted, with a folder before what is in it, owned by root,
// dated date.
func (t tree) writeTar(ctx context.Context, w io.Writer, date time.Time) error {
	all := tree{}
	for name, m := range t {
		all[name] = m
		for d := path.Dir(name); d != "."; d = path.Dir(d) {
			if _, ok := t[d]; !ok {
				all[d] = member{mode: fs.ModeDir | 0o755}
			}
		}
	}
	out := tar.NewWriter(w)
	for _, name := range sortedKeys(all) {
		m := all[name]
		h := &tar.Header{Name: name, Mode: int64(m.mode.Perm()), Size: m.size, ModTime: date, Typeflag: tar.TypeReg}
		switch {
		case m.mode.IsDir():
			h.Typeflag, h.Name = tar.TypeDir, name+"/"
			if m.mode&fs.ModeSticky != 0 {
				h.Mode |= 0o1000
			}
		case m.mode&fs.ModeSymlink != 0:
			h.Typeflag, h.Linkname = tar.TypeSymlink, m.link
		}
		if m.capability != "" {
			h.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": m.capability}
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

func (m member) copyTo(ctx context.Context, w io.Writer) error {
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

// writeTarGz writes t into the file dir/name.
func (t tree) writeTarGz(ctx context.Context, dir, name string, date time.Time) (Artefact, error) {
	return writeGz(dir, name, func(w io.Writer) error { return t.writeTar(ctx, w, date) })
}

// gzip blocks: a fixed size gives the same bytes for any number of processors.
const gzipBlock = 1 << 20

// gzipLevel 4 takes half of the time of gzip's usual 6, for 5 % more bytes.
const gzipLevel = 4

// writeGz compresses what f writes into the file dir/name. The gzip header has
// no name and no time.
func writeGz(dir, name string, f func(io.Writer) error) (a Artefact, err error) {
	file, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	sum := newSummer(file)
	z, err := pgzip.NewWriterLevel(sum, gzipLevel)
	if err != nil {
		return a, err
	}
	if err := z.SetConcurrency(gzipBlock, runtime.GOMAXPROCS(0)); err != nil {
		return a, err
	}
	err = errors.Join(f(z), z.Close())
	return sum.artefact(name), err
}

// readTarGz calls f for each member of a tarball.
func readTarGz(path string, f func(*tar.Header, io.Reader) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	return eachMember(z, f)
}

func eachMember(r io.Reader, f func(*tar.Header, io.Reader) error) error {
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f(h, in); err != nil {
			return err
		}
	}
}

// summer hashes and counts what is written through it.
type summer struct {
	w    io.Writer
	hash interface {
		io.Writer
		Sum([]byte) []byte
	}
	n int64
}

func newSummer(w io.Writer) *summer { return &summer{w: w, hash: sha256.New()} }

func (s *summer) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.hash.Write(p[:n])
	s.n += int64(n)
	return n, err
}

func (s *summer) artefact(name string) Artefact {
	return Artefact{Name: name, SHA256: hex.EncodeToString(s.hash.Sum(nil)), Size: s.n}
}

// writeFile writes b into the file dir/name.
func writeFile(dir, name string, b []byte) (Artefact, error) {
	s := newSummer(io.Discard)
	_, _ = s.Write(b)
	return s.artefact(name), os.WriteFile(filepath.Join(dir, name), b, 0o644)
}

// sumFile returns the artefact that the file dir/name is.
func sumFile(dir, name string) (Artefact, error) {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return Artefact{}, err
	}
	defer f.Close()
	s := newSummer(io.Discard)
	_, err = io.Copy(s, f)
	return s.artefact(name), err
}

// safeName reports whether a name from a file that we read stays in its folder.
func safeName(name string) bool {
	return name != "" && name == path.Base(name) && !strings.HasPrefix(name, ".") && !strings.ContainsAny(name, `/\`)
}
