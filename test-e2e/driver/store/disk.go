// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Lane has calls that may hang go on one after the other. Who waits for one waits no longer than its context; the call goes on.
type Lane chan struct{}

// NewLane returns one in which nothing goes on.
func NewLane() Lane { return make(Lane, 1) }

// Do does something, unless the context has ended.
func (l Lane) Do(ctx context.Context, do func() error) error {
	result := make(chan error, 1)
	select {
	case l <- struct{}{}:
		go func() {
			defer func() { <-l }()
			if ctx.Err() == nil {
				result <- do()
			}
		}()
	case <-ctx.Done():
	}
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: it hangs: %w", ErrAway, context.Cause(ctx))
	}
}

// disk is that of a pool.
type disk struct {
	store *Store
	name  string
	size  int64
	dir   string
	lane  Lane
}

func (d *disk) volumes() string { return filepath.Join(d.dir, "volumes") }

// do does something on the disk, if it is mounted.
func (d *disk) do(ctx context.Context, do func() error) error {
	err := d.lane.Do(ctx, func() error {
		if err := d.check(); err != nil {
			return err
		}
		return do()
	})
	if err != nil {
		return fmt.Errorf("pool %s: %w", d.name, err)
	}
	return nil
}

// check returns an error if the disk is not mounted, or another one is in its place. A pool gets its ID once, on a disk that
// has none and no data.
func (d *disk) check() error {
	known := filepath.Join(d.store.own, "disks", d.name)
	want, err := os.ReadFile(known)
	if errors.Is(err, fs.ErrNotExist) {
		if want, err = d.mark(known); err != nil {
			return fmt.Errorf("%w: pool %s cannot be marked as new: %w", ErrAway, d.name, err)
		}
	}
	have, haveErr := os.ReadFile(filepath.Join(d.dir, "id"))
	if err = errors.Join(err, haveErr); err == nil && !bytes.Equal(have, want) {
		err = fmt.Errorf("its ID is %q; expected %q", have, want)
	}
	if err != nil {
		return fmt.Errorf("%w: %s is not the disk of pool %s: %w", ErrAway, d.dir, d.name, err)
	}
	return nil
}

func (d *disk) mark(known string) ([]byte, error) {
	if err := os.MkdirAll(d.volumes(), 0o700); err != nil {
		return nil, err
	}
	if data, err := os.ReadDir(d.volumes()); err != nil || len(data) > 0 {
		return nil, errors.Join(err, fmt.Errorf("%s has %d files; restore %s, or empty it", d.volumes(), len(data), filepath.Dir(known)))
	}
	id := fmt.Appendf(nil, "%016x", rand.Uint64())
	return id, errors.Join(d.store.replace(filepath.Join(d.dir, "id"), id), d.store.replace(known, id))
}

// free returns the smaller of what the files leave of the pool, whatever they are, and what the file system has.
func (d *disk) free() (int64, error) {
	files, err := os.ReadDir(d.volumes())
	left := d.size
	for _, file := range files {
		info, infoErr := file.Info()
		if infoErr != nil {
			return 0, infoErr
		}
		left -= info.Size()
	}
	var stat unix.Statfs_t
	err = errors.Join(err, unix.Statfs(d.dir, &stat))
	return max(0, min(left, int64(stat.Bavail)*stat.Bsize)), err
}

// take makes the file of a copy, if there is room for it. The disk's lane keeps others from doing so at the same time.
func (d *disk) take(path string, bytes int64) error {
	if free, err := d.free(); err != nil || free < bytes {
		return cmp.Or(err, ErrNoRoom)
	}
	d.store.Fault.Step("allocate")
	return Allocate(path, bytes)
}

// Allocate makes a file, and takes the room that it has not taken.
func Allocate(path string, bytes int64) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	err = unix.Fallocate(int(file.Fd()), 0, 0, bytes)
	return errors.Join(err, file.Sync(), file.Close(), syncFolder(filepath.Dir(path)))
}
