package pool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockTime is how long to wait for a lock: a process that has it may hang with its disk.
var lockTime = 10 * time.Second

// lockFolder waits until no other process has the lock, and returns what ends it. It
// ends with the process, too.
func lockFolder(dir string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
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
	file, err := os.OpenFile(filepath.Join(s.dir, "driver"), os.O_CREATE|os.O_RDWR, 0o600)
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
	file, err := os.OpenFile(temporary, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
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

// Replace puts the data of a copy in the place of that of an old one, which goes when the copy is discarded. It
// does nothing if they are the same. If the new one cannot be renamed, the old one stays.
func Replace(old, with Volume) error {
	if old.Path == with.Path {
		return nil
	}
	if err := os.Rename(old.Path, with.Path+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(with.Path, old.Path); err != nil {
		return errors.Join(err, os.Rename(with.Path+suffix, old.Path))
	}
	return SyncFolder(filepath.Dir(old.Path))
}

// suffix is added to the name of data that is being removed. No ID ends so: it has one @ before the name of a node.
const suffix = "@@removed"

// Discard removes the data of a volume, and then what the node knows of it, unless that has
// changed since it was read. It can be repeated. What is removed half must not be taken for a
// volume, so it is renamed first.
func (s *Store) Discard(v Volume) error {
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
