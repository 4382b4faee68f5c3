package pool

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// folder returns the folder of a pool. It is not the root of the disk, so it is only there while the disk
// is mounted.
func (s *Store) folder(pool string) string { return filepath.Join(s.data, pool, "volumes") }

// known returns the file that says that the folder of a pool was made, and on which disk.
func (s *Store) known(pool string) string { return filepath.Join(s.dir, pool+".pool") }

// diskID returns the file with the ID of the disk that has a folder.
func diskID(folder string) string { return filepath.Join(filepath.Dir(folder), "id") }

// errHasData is final: somebody has to look.
var errHasData = errors.New("restore the books, or empty it")

// addPool makes the folder of a pool that is new in the books, and never again. Its disk gets an ID, and is the first to
// have it: while it is full, a pool stays new.
func (s *Store) addPool(name string) error {
	_, err := os.Stat(s.known(name))
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	id := []byte(rand.Text())
	if err := s.makeFolder(name); err != nil {
		return err
	}
	if err := s.replace(diskID(s.folder(name)), id, "ID"); err != nil {
		return err
	}
	return s.replace(s.known(name), id, "ID")
}

func (s *Store) makeFolder(pool string) error {
	dir := s.folder(pool)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	data, err := os.ReadDir(dir)
	if err == nil && len(data) > 0 {
		err = fmt.Errorf("pool %s is new in the books of node %s, but %s has data; %w", pool, s.Node, dir, errHasData)
	}
	return errors.Join(err, SyncFolder(filepath.Dir(dir)))
}

// Mounted returns an error if the disk of a volume is not mounted, or another one is in its place.
func (s *Store) Mounted(v Volume) error {
	// Another node may have put a link there.
	for _, dir := range []string{s.data, filepath.Join(s.data, v.Pool), s.folder(v.Pool), v.Path} {
		info, err := os.Lstat(dir)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is no folder", dir)
		}
		if err != nil && (dir != v.Path || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return s.mounted(v.Pool, s.folder(v.Pool))
}

func (s *Store) mounted(pool, folder string) error {
	_, err := os.Stat(folder)
	want, wantErr := readFile(s.known(pool))
	have, haveErr := readFile(diskID(folder))
	if err := errors.Join(err, wantErr, haveErr); err != nil {
		return err
	}
	if !bytes.Equal(have, want) {
		return fmt.Errorf("%s is not on the disk of pool %s of node %s: it has another ID", folder, pool, s.Node)
	}
	return nil
}

// RemoveUnknown removes what this driver has left of copies and removals that were cut. Other data that is in no books
// may be needed: the books may be older than it. It is an error, and so is a disk that is not that of its pool. It
// must not run while this node makes data.
func (s *Store) RemoveUnknown() error {
	volumes, err := s.Volumes()
	if err != nil {
		return err
	}
	for _, p := range s.pools {
		dir := s.folder(p.Name)
		if mountedErr := s.mounted(p.Name, dir); mountedErr != nil {
			err = errors.Join(err, mountedErr)
			continue
		}
		entries, readErr := os.ReadDir(dir)
		err = errors.Join(err, readErr)
		for _, e := range entries {
			if !slices.ContainsFunc(volumes, func(v Volume) bool { return v.Pool == p.Name && v.ID == e.Name() }) {
				err = errors.Join(err, s.removeUnknown(filepath.Join(dir, e.Name())))
			}
		}
	}
	return err
}

func (s *Store) removeUnknown(path string) error {
	if !strings.HasSuffix(path, copying) && !strings.HasSuffix(path, suffix) {
		return fmt.Errorf("%s is in no books of node %s, and stays; remove it if it is not needed", path, s.Node)
	}
	return os.RemoveAll(path)
}
