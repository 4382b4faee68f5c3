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

	"golang.org/x/sys/unix"
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

// Pool has a disk and a size of its own. No volume spans two pools.
type Pool struct {
	// Name is what parameters of storage classes call the pool.
	Name string
	// Size is how many bytes the volumes of the pool may have together.
	Size resource.Quantity
}

// ParsePools returns the pools with names and sizes, sorted by name.
func ParsePools(sizes map[string]string) (pools []Pool, err error) {
	if len(sizes) == 0 {
		return nil, fmt.Errorf("no pools; expected at least one, such as fast=100Gi")
	}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		size, err := resource.ParseQuantity(sizes[name])
		if err != nil || size.Sign() <= 0 {
			return nil, fmt.Errorf("pool %s: size %q; expected one that is positive, such as 100Gi", name, sizes[name])
		}
		if wrong := validation.IsConfigMapKey(name); len(wrong) > 0 { // It is one of a folder.
			return nil, fmt.Errorf("pool %q: expected a name: %s", name, strings.Join(wrong, ", "))
		}
		pools = append(pools, Pool{Name: name, Size: size})
	}
	return pools, nil
}

// Store has the copies of one node. All methods can be called in parallel, but not two changes of the same copy.
type Store struct {
	own   string
	disks map[string]*disk
	owned *os.File
	fault Fault

	lock   sync.Mutex
	copies map[string]Copy // by key
	broken []string        // keys of records that cannot be read
}

// Open opens the folder of a node. isNew is asked if it has no owner, and returns an error if the node has volumes: then it
// is not mounted.
func Open(own, node string, pools []Pool, isNew func() error, fault Fault) (*Store, error) {
	s := &Store{own: own, disks: map[string]*disk{}, copies: map[string]Copy{}, fault: fault}
	if err := s.claim(node, isNew); err != nil {
		return nil, fmt.Errorf("%w: the folder of node %s: %w", ErrAway, node, err)
	}
	for _, p := range pools {
		s.disks[p.Name] = &disk{Pool: p, store: s, dir: filepath.Join(own, "pools", p.Name), work: make(chan func()), used: map[string]int64{}}
	}
	files, err := os.ReadDir(filepath.Join(own, "records"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrAway, err), s.owned.Close())
	}
	for _, file := range files {
		key, isRecord := strings.CutSuffix(file.Name(), ".json")
		if !isRecord { // what a crash has left
			continue
		}
		data, err := os.ReadFile(filepath.Join(own, "records", file.Name()))
		var c Copy
		if err == nil {
			c, err = decode(data, key)
		}
		if err != nil {
			klog.Background().Error(err, "Record cannot be read; its volume cannot be used, and its room stays used", "file", file.Name())
			s.broken = append(s.broken, key)
			continue
		}
		s.copies[key] = c
		if d := s.disks[c.Pool]; d != nil {
			d.used[key] = c.Bytes
		}
	}
	for _, d := range s.disks {
		go func() {
			for do := range d.work {
				do()
			}
		}()
	}
	return s, nil
}

// Close ends the goroutines, and lets another process have the folder.
func (s *Store) Close() error {
	for _, d := range s.disks {
		close(d.work)
	}
	return s.owned.Close()
}

// claim makes sure that the folder is that of the node, and keeps another process from it as long as this one runs.
func (s *Store) claim(node string, isNew func() error) error {
	marker := filepath.Join(s.own, "owner")
	owner, err := os.ReadFile(marker)
	if errors.Is(err, fs.ErrNotExist) {
		if err = isNew(); err != nil {
			return fmt.Errorf("%s is not there, perhaps because it is not mounted: %w", marker, err)
		}
		err = errors.Join(os.MkdirAll(s.own, 0o700), s.replace(marker, []byte(node)))
		owner = []byte(node)
	}
	if err != nil {
		return err
	}
	if string(owner) != node {
		return fmt.Errorf("%s says that it is the one of node %q", marker, owner)
	}
	if s.owned, err = os.Open(marker); err != nil {
		return err
	}
	if err := unix.Flock(int(s.owned.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("another driver uses %s: %w", s.own, err), s.owned.Close())
	}
	return errors.Join(os.MkdirAll(filepath.Join(s.own, "records"), 0o700), os.MkdirAll(filepath.Join(s.own, "disks"), 0o700))
}

// Fault, if not nil, is called before each change. Tests use it to end the driver there, as kill -9 does.
type Fault func(step string)

// Step is called before a change.
func (f Fault) Step(name string) {
	if f != nil {
		f(name)
	}
}

// All returns all copies, and Copies those of a volume, with an error if a record of it cannot be read.
func (s *Store) All() []Copy {
	s.lock.Lock()
	defer s.lock.Unlock()
	return slices.Collect(maps.Values(s.copies))
}

func (s *Store) Copies(handle string) (copies []Copy, err error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	prefix := hashOf(handle) + "."
	for _, key := range s.broken {
		if strings.HasPrefix(key, prefix) {
			return nil, fmt.Errorf("%w: the record %s of volume %s cannot be read", ErrAway, key, handle)
		}
	}
	for _, c := range s.copies {
		if c.Handle == handle {
			copies = append(copies, c)
		}
	}
	return copies, nil
}

// Rooms returns what is free in the pools with the names, or in all if there are none. One whose disk is not mounted, or
// hangs, is left out.
func (s *Store) Rooms(ctx context.Context, names []string) map[string]int64 {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rooms, lock, all := map[string]int64{}, sync.Mutex{}, sync.WaitGroup{}
	for name, d := range s.disks {
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		all.Go(func() {
			bytes, err := d.free(ctx)
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

// Reserve takes the room for a copy, in the allowed pool that it fills best, and of several the one whose name comes first.
func (s *Store) Reserve(ctx context.Context, c Copy) (Copy, error) {
	rooms := s.Rooms(ctx, c.Pools)
	for _, name := range slices.SortedFunc(maps.Keys(rooms), func(a, b string) int {
		return cmp.Or(cmp.Compare(rooms[a], rooms[b]), strings.Compare(a, b))
	}) {
		if rooms[name] < Sectors(c.Bytes) || !s.disks[name].take(c.Key(), c.Bytes) {
			continue
		}
		c.Pool = name
		err := s.Put(c)
		if err != nil {
			s.disks[name].give(c.Key())
		}
		return c, err
	}
	return c, fmt.Errorf("%w for %d bytes", ErrNoRoom, c.Bytes)
}

// Put writes the record of a copy.
func (s *Store) Put(c Copy) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err == nil {
		err = s.replace(s.record(c), append(data, '\n'))
	}
	if err == nil {
		s.lock.Lock()
		defer s.lock.Unlock()
		s.copies[c.Key()] = c
	}
	return err
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
	if d := s.disks[c.Pool]; d != nil {
		return d.queue(ctx, func() error { return nil })
	}
	return nil
}

// Path is where the data of a copy is.
func (s *Store) Path(c Copy) string { return filepath.Join(s.own, "pools", c.Pool, "volumes", c.Key()) }

// Open opens the data of a copy, if all of it is there.
func (s *Store) Open(ctx context.Context, c Copy) error {
	return s.Do(ctx, c, func(path string) error {
		file, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrAway, err)
		}
		if err = checkSize(file, c.Bytes); err == nil {
			_, err = file.ReadAt(make([]byte, 1), 0)
		}
		return errors.Join(err, file.Close())
	})
}

// Remove removes the data of a copy, and then its record. It can be repeated.
func (s *Store) Remove(ctx context.Context, c Copy) error {
	err := s.Do(ctx, c, func(path string) error {
		s.fault.Step("remove data")
		return remove(path)
	})
	if err == nil {
		s.fault.Step("remove record")
		err = remove(s.record(c))
	}
	if err != nil {
		return err
	}
	s.lock.Lock()
	delete(s.copies, c.Key())
	s.lock.Unlock()
	s.disks[c.Pool].give(c.Key())
	return nil
}
