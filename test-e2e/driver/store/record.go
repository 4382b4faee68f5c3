// SPDX-License-Identifier: Apache-2.0

package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// State is how far a copy is. All of them take room.
type State string

const (
	// Half is one whose data is not complete. Nobody has been told of it.
	Half State = "half"
	// Copied is one that was made from that of another node, is complete, and was never written to.
	Copied State = "copied"
	// Ready is one that may have been written to.
	Ready State = "ready"
)

// Copy is the record of a copy.
type Copy struct {
	// Handle is that of the volume, and ID the name of the copy. They do not change.
	Handle string `json:"handle"`
	ID     string `json:"id"`
	State  State  `json:"state"`
	// Pool is where it is, and Pools those that are allowed, with commas between them. Empty: all.
	Pool  string `json:"pool"`
	Pools string `json:"pools,omitempty"`
	// Bytes is the size of its file, in whole sectors.
	Bytes int64 `json:"bytes"`
	// Block is whether the volume is a device, without a file system.
	Block bool `json:"block,omitempty"`
	// RemoveAt is when one is removed that does not count any more. Zero: that is not known yet.
	RemoveAt time.Time `json:"removeAt,omitzero"`
}

// IsDue tells that it is to be removed.
func (c Copy) IsDue() bool { return !c.RemoveAt.IsZero() && !time.Now().Before(c.RemoveAt) }

// Key is the name of the data and of the record.
func (c Copy) Key() string { return hashOf(c.Handle) + "." + c.ID }

// hashOf is for names of files, which are shorter than a handle may be.
func hashOf(handle string) string {
	sum := sha256.Sum256([]byte(handle))
	return hex.EncodeToString(sum[:16])
}

// replace replaces a file: after a crash, or on a full disk, it has the old or the new content.
func (s *Store) replace(path string, data []byte) error {
	temporary := path + ".tmp"
	name := strings.SplitN(filepath.Base(path), ".", 2)[0]
	s.Fault.Step("write " + name)
	file, err := os.OpenFile(temporary, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	s.Fault.Step("rename " + name)
	return errors.Join(os.Rename(temporary, path), syncFolder(filepath.Dir(path)))
}

// syncFolder makes durable which files a folder has.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// remove removes a file that may be gone already.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// decode reads a record, whose name has to be that of its key.
func decode(data []byte, key string) (c Copy, err error) {
	if err = json.Unmarshal(data, &c); err == nil && (c.Key() != key || c.Bytes < 0) {
		err = fmt.Errorf("copy %q of %q in pool %q with %d bytes is none of the driver", c.ID, c.Handle, c.Pool, c.Bytes)
	}
	return c, err
}

// Peer is the folder of another node. It may have anything in it: links do not lead out of it, and only a regular file of the
// right size is the data of a volume.
type Peer string

// Open opens the data of a copy, which has to have the size of the volume.
func (p Peer) Open(handle, id string, bytes int64) (*os.File, error) {
	root, err := os.OpenRoot(string(p))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	folder, err := root.OpenFile("pools", unix.O_DIRECTORY, 0) // nothing else is opened: a pipe hangs
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	const most = 100
	pools, err := folder.Readdirnames(most + 1)
	if err != nil || len(pools) > most {
		return nil, errors.Join(err, fmt.Errorf("%s has %d pools or more; expected 1 to %d", p, len(pools), most))
	}
	for _, pool := range pools {
		// To open a device may do something. So it is looked at before.
		file, err := root.OpenFile(filepath.Join("pools", pool, "volumes", Copy{Handle: handle, ID: id}.Key()), unix.O_PATH|unix.O_NOFOLLOW, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		defer file.Close()
		info, err := file.Stat()
		if err == nil {
			err = checkFile(info, bytes)
		}
		if err != nil {
			return nil, err
		}
		return os.Open(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	}
	return nil, fmt.Errorf("%s has no copy %s of volume %s", p, id, handle)
}

func checkFile(info os.FileInfo, bytes int64) error {
	if !info.Mode().IsRegular() || info.Size() != bytes {
		return fmt.Errorf("%s is no file of %d bytes", info.Name(), bytes)
	}
	return nil
}
