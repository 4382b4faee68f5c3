package pool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockTime is how long to wait for a lock: a process that has it may hang with its disk.
var lockTime = 10 * time.Second

// OpenFile opens a file in whose place another node may have put anything. A link would lead to another file of this node.
func OpenFile(path string, flags int) (*os.File, error) {
	file, err := os.OpenFile(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// readFile reads a small file.
func readFile(path string) ([]byte, error) {
	file, err := OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, 1<<16))
	return data, errors.Join(err, file.Close())
}

// lockFolder waits until no other process has the lock, and returns what ends it. It
// ends with the process, too.
func lockFolder(dir string) (unlock func(), err error) {
	file, err := OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(lockTime); ; time.Sleep(time.Millisecond) { // flock has no deadline
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) || time.Now().After(deadline) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}

// Own fails if another process is the driver of the node, and keeps others from that as long as this
// one runs: a copy that the other one goes on with would be taken for one of this one.
func (s *Store) Own() error {
	file, err := OpenFile(filepath.Join(s.dir, "driver"), os.O_CREATE|os.O_RDWR)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("another driver of node %s runs: %w", s.Node, err), file.Close())
	}
	s.owned = file
	return nil
}

// SyncFolder makes durable which files a folder has.
func SyncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// write replaces the file of a volume.
func (s *Store) write(v Volume) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return s.replace(s.file(v.ID), append(data, '\n'), "record "+string(v.State))
}

// replace replaces a file: after a crash, or on a full disk, it has the old or the new content.
func (s *Store) replace(path string, data []byte, name string) error {
	temporary := path + ".tmp"
	file, err := OpenFile(temporary, os.O_CREATE|os.O_WRONLY|os.O_TRUNC)
	if err != nil {
		return err
	}
	s.Step("write " + name)
	_, err = file.Write(data)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	s.Step("rename " + name)
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	s.Step("renamed " + name)
	return SyncFolder(filepath.Dir(path))
}

// Complete gives the data of a copy the name of that of its volume.
func Complete(v Volume) error {
	if err := os.Rename(CopyPath(v), v.Path); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(v.Path))
}

// CopyPath is where a copy is made. After a crash, one that is not complete is not taken for a volume.
func CopyPath(v Volume) string { return v.Path + copying }

// These are added to the name of data that is being copied or removed. No ID ends so: it has at most one @.
const (
	copying = "@@copying"
	suffix  = "@@removed"
)

// Discard removes the data of a volume, and then what the node knows of it, unless that has
// changed since it was read. It can be repeated. What is removed half must not be taken for a
// volume, so it is renamed first.
func (s *Store) Discard(v Volume) error {
	if s.isPeer {
		return fmt.Errorf("only node %s removes what it has of volume %s", s.Node, v.ID)
	}
	if err := s.Mounted(v); err != nil {
		return err
	}
	removed := v.Path + suffix
	if err := os.RemoveAll(removed); err != nil { // what an earlier call could not remove
		return err
	}
	unchanged := func(do func() error) error {
		return s.locked(func(volumes map[string]*Volume) error {
			if now := volumes[v.ID]; now != nil && (now.State != v.State || now.Generation != v.Generation || now.StagedAt != v.StagedAt) {
				return fmt.Errorf("volume %s has changed on node %s; it is %s", v.ID, s.Node, now.State)
			}
			return do()
		})
	}
	err := unchanged(func() error {
		s.Step("rename data")
		if err := os.Rename(v.Path, removed); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.Step("remove data")
	if err := os.RemoveAll(removed); err != nil {
		return err
	}
	if err := SyncFolder(filepath.Dir(v.Path)); err != nil { // as if the disk is not mounted
		return err
	}
	return unchanged(func() error {
		s.Step("remove record")
		s.record("gives back", v)
		if err := os.Remove(s.file(v.ID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		s.Step("removed record")
		s.record("given back", v)
		return SyncFolder(s.dir)
	})
}
