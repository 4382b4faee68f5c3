// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

// disk is that of a pool.
type disk struct {
	Pool
	store *Store
	dir   string
	// work is done one after the other by the disk's goroutine: calls that hang when the disk does.
	work chan func()

	lock sync.Mutex
	// used is the room of each copy, by its key: those with records, and data that is in no record.
	used map[string]int64
	// isRead tells that data without a record was looked for.
	isRead bool
}

func (d *disk) volumes() string { return filepath.Join(d.dir, "volumes") }

// do does something on the disk, if it is mounted, or returns an error when the context ends. It goes on then.
func (d *disk) do(ctx context.Context, do func() error) error {
	return d.queue(ctx, func() error {
		if err := d.check(); err != nil {
			return err
		}
		return do()
	})
}

func (d *disk) queue(ctx context.Context, do func() error) error {
	result := make(chan error, 1)
	select {
	case d.work <- func() {
		if ctx.Err() != nil {
			return
		}
		result <- do()
	}:
	case <-ctx.Done():
		return fmt.Errorf("%w: pool %s hangs: %w", ErrAway, d.Name, context.Cause(ctx))
	}
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: pool %s hangs: %w", ErrAway, d.Name, context.Cause(ctx))
	}
}

// check returns an error if the disk is not mounted, or another one is in its place. A pool gets its ID once, on a disk that
// has none and no data.
func (d *disk) check() error {
	known := filepath.Join(d.store.own, "disks", d.Name)
	want, err := os.ReadFile(known)
	if errors.Is(err, fs.ErrNotExist) {
		if want, err = d.mark(known); err != nil {
			return fmt.Errorf("%w: pool %s cannot be marked as new: %w", ErrAway, d.Name, err)
		}
	}
	have, haveErr := os.ReadFile(filepath.Join(d.dir, "id"))
	if err = errors.Join(err, haveErr); err != nil || !bytes.Equal(have, want) {
		return fmt.Errorf("%w: %s is not the disk of pool %s: ID %q; expected %q: %w", ErrAway, d.dir, d.Name, have, want, err)
	}
	return d.read()
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

// read finds data that is in no record, once. Somebody has to look at it; until then, its room is used.
func (d *disk) read() error {
	d.lock.Lock()
	defer d.lock.Unlock()
	if d.isRead {
		return nil
	}
	entries, err := os.ReadDir(d.volumes())
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, ok := d.used[e.Name()]; ok {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		d.used[e.Name()] = info.Size()
		klog.Background().Error(nil, "Data is in no record, and stays; remove it if it is not needed", "file", filepath.Join(d.volumes(), e.Name()))
	}
	d.isRead = true
	return nil
}

// free returns the smaller of what the records leave and what the file system has.
func (d *disk) free(ctx context.Context) (bytes int64, err error) {
	var stat unix.Statfs_t
	if err := d.do(ctx, func() error { return unix.Statfs(d.dir, &stat) }); err != nil {
		return 0, err
	}
	d.lock.Lock()
	defer d.lock.Unlock()
	return max(0, min(d.left(), int64(stat.Bavail)*stat.Bsize)), nil
}

func (d *disk) left() int64 {
	left := d.Size.Value()
	for _, bytes := range d.used {
		left -= bytes
	}
	return left
}

// take takes the room for a copy, if there is so much by the records.
func (d *disk) take(key string, bytes int64) bool {
	d.lock.Lock()
	defer d.lock.Unlock()
	if d.left() < bytes {
		return false
	}
	d.used[key] = bytes
	return true
}

func (d *disk) give(key string) {
	d.lock.Lock()
	defer d.lock.Unlock()
	delete(d.used, key)
}
