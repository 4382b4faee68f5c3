// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"
)

var (
	// ErrNoRoom is returned when no pool has room for a copy.
	ErrNoRoom = errors.New("no pool has enough room")
	// ErrAway is returned for what cannot be reached: it may be there.
	ErrAway = errors.New("not reachable")
)

// patience is how long a disk may take to say what is free.
const patience = 2 * time.Second

// ParsePools returns the sizes of pools, by their names. A pool has a disk of its own, and no volume spans two.
func ParsePools(texts map[string]string) (map[string]resource.Quantity, error) {
	if len(texts) == 0 {
		return nil, fmt.Errorf("no pools; expected at least one, such as fast=100Gi")
	}
	pools := map[string]resource.Quantity{}
	for name, text := range texts {
		size, err := resource.ParseQuantity(text)
		if err != nil || size.Sign() <= 0 {
			return nil, fmt.Errorf("pool %s: size %q; expected one that is positive, such as 100Gi", name, text)
		}
		if wrong := validation.IsConfigMapKey(name); len(wrong) > 0 { // It is one of a folder.
			return nil, fmt.Errorf("pool %q: expected a name: %s", name, strings.Join(wrong, ", "))
		}
		pools[name] = size
	}
	return pools, nil
}

// Store has the copies of one node. It keeps nothing in memory: what is in the folder counts. All methods can be called in
// parallel, but not two changes of the same copy.
type Store struct {
	own, node string
	disks     map[string]*disk
	// Fault is what tests end the driver with.
	Fault Fault
}

// New returns the store of a node in a folder, with pools of some sizes.
func New(own, node string, pools map[string]resource.Quantity) *Store {
	s := &Store{own: own, node: node, disks: map[string]*disk{}}
	for name, size := range pools {
		s.disks[name] = &disk{store: s, name: name, size: size.Value(), dir: filepath.Join(own, "pools", name), lane: NewLane()}
	}
	return s
}

// Check returns an error if the folder is not that of the node, perhaps because it is not mounted. The driver never says so
// itself: a folder without an owner may be what is below the one that is to be mounted.
func (s *Store) Check() error {
	owner, err := os.ReadFile(filepath.Join(s.own, "owner"))
	if name := strings.TrimSpace(string(owner)); err == nil && name != s.node {
		err = fmt.Errorf("its owner is node %q", name)
	}
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Join(s.own, "records"), 0o700), os.MkdirAll(filepath.Join(s.own, "disks"), 0o700))
	}
	if err != nil {
		return fmt.Errorf("%w: %s is not mounted, or not the folder of node %s: %w", ErrAway, s.own, s.node, err)
	}
	return nil
}

// Fault, if not nil, is called before each change. Tests use it to end the driver there, as kill -9 does.
type Fault func(step string)

// Step is called before a change.
func (f Fault) Step(name string) {
	if f != nil {
		f(name)
	}
}

// Copies returns the copies of a volume, or of all volumes if the handle is empty, and an error if a record cannot be read.
func (s *Store) Copies(handle string) (copies []Copy, err error) {
	files, err := os.ReadDir(filepath.Join(s.own, "records"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAway, err)
	}
	for _, file := range files {
		key, isRecord := strings.CutSuffix(file.Name(), ".json") // others are what a crash has left
		if !isRecord || handle != "" && !strings.HasPrefix(key, hashOf(handle)+".") {
			continue
		}
		data, readErr := os.ReadFile(filepath.Join(s.own, "records", file.Name()))
		if errors.Is(readErr, fs.ErrNotExist) { // It was removed since.
			continue
		}
		c := Copy{}
		if readErr == nil {
			c, readErr = decode(data, key)
		}
		if readErr != nil {
			err = errors.Join(err, fmt.Errorf("%w: record %s: %w", ErrAway, file.Name(), readErr))
			continue
		}
		copies = append(copies, c)
	}
	return copies, err
}

// Rooms returns what is free in the pools with the names, which have commas between them, or in all if there are none. One whose disk is not mounted, or
// hangs, is left out.
func (s *Store) Rooms(ctx context.Context, names string) map[string]int64 {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rooms, lock, all := map[string]int64{}, sync.Mutex{}, sync.WaitGroup{}
	for name, d := range s.disks {
		if names != "" && !slices.Contains(strings.Split(names, ","), name) {
			continue
		}
		all.Go(func() {
			var bytes int64
			err := d.do(ctx, func() (err error) {
				bytes, err = d.free()
				return err
			})
			if err != nil {
				klog.FromContext(ctx).Error(err, "Pool offers nothing", "pool", name)
				return
			}
			lock.Lock()
			defer lock.Unlock()
			rooms[name] = bytes
		})
	}
	all.Wait()
	return rooms
}

// Reserve takes the room for a copy: it makes its record, and then its file, in the allowed pool that it fills best, and of
// several the one whose name comes first.
func (s *Store) Reserve(ctx context.Context, c Copy) (Copy, error) {
	rooms, err := s.Rooms(ctx, c.Pools), ErrNoRoom
	for _, name := range slices.SortedFunc(maps.Keys(rooms), func(a, b string) int {
		return cmp.Or(cmp.Compare(rooms[a], rooms[b]), strings.Compare(a, b))
	}) {
		if rooms[name] < c.Bytes {
			continue
		}
		c.Pool = name
		if err = s.Put(c); err == nil {
			err = s.Do(ctx, c, func(path string) error { return s.disks[name].take(path, c.Bytes) })
		}
		if err == nil {
			return c, nil
		}
		if err = errors.Join(err, s.Remove(ctx, c)); !errors.Is(err, ErrNoRoom) { // Another one was faster.
			return c, err
		}
	}
	return c, fmt.Errorf("%w for %d bytes", err, c.Bytes)
}

// Put writes the record of a copy.
func (s *Store) Put(c Copy) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return s.replace(s.record(c), append(data, '\n'))
}

func (s *Store) record(c Copy) string { return filepath.Join(s.own, "records", c.Key()+".json") }

// Do does something with the data of a copy, if its disk is mounted. An error of a context means that it goes on.
func (s *Store) Do(ctx context.Context, c Copy, do func(path string) error) error {
	d := s.disks[c.Pool]
	if d == nil {
		return fmt.Errorf("%w: there is no pool %s", ErrAway, c.Pool)
	}
	return d.do(ctx, func() error { return do(s.Path(c)) })
}

// Wait waits for what was begun with the data of a copy, also if its disk is away.
func (s *Store) Wait(ctx context.Context, c Copy) error {
	d := s.disks[c.Pool]
	if d == nil {
		return nil
	}
	return d.lane.Do(ctx, func() error { return nil })
}

// Path is where the data of a copy is.
func (s *Store) Path(c Copy) string { return filepath.Join(s.own, "pools", c.Pool, "volumes", c.Key()) }

// See returns an error if not all of the data of a copy is there.
func (s *Store) See(ctx context.Context, c Copy) error {
	return s.Do(ctx, c, func(path string) error {
		info, err := os.Lstat(path)
		if err == nil {
			err = checkFile(info, c.Bytes)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrAway, err)
		}
		return nil
	})
}

// Remove removes the data of a copy, and then its record. It can be repeated.
func (s *Store) Remove(ctx context.Context, c Copy) error {
	err := s.Do(ctx, c, func(path string) error {
		s.Fault.Step("remove data")
		return remove(path)
	})
	if err != nil {
		return err
	}
	s.Fault.Step("remove record")
	return remove(s.record(c))
}
