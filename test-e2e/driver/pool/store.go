package pool

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

var (
	// ErrNoRoom is returned when no pool has room for a volume.
	ErrNoRoom = errors.New("no pool has enough room")
	// ErrNotFound is returned for volumes that the node does not know.
	ErrNotFound = errors.New("volume not found")
)

// Store has the books of one node. All methods can be called in parallel, also from
// several processes.
type Store struct {
	// Node is the name of the node.
	Node string
	// Fault, if not nil, is called before and after each change of the disk. Tests
	// use it to end a call there, as kill -9 does.
	Fault func(step string)

	root, dir string
}

// Room is what is left of a pool.
type Room struct {
	Pool Pool
	// AvailableBytes is how much room there is for new volumes, at least 0.
	AvailableBytes int64
}

// Create opens the books of a node for the driver of that node, which says what pools
// there are. Their folders are made.
func Create(root, node string, pools []Pool) (*Store, error) {
	s := &Store{Node: node, root: root, dir: filepath.Join(root, node)}
	pools, err := resolve(pools, filepath.Join(s.dir, "pools"))
	if err != nil {
		return nil, err
	}
	folders := []string{filepath.Join(s.dir, "volumes")}
	for _, p := range pools {
		folders = append(folders, p.Path)
	}
	for _, folder := range folders {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
	}
	unlock, err := lockFolder(s.dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return s, s.write(filepath.Join(s.dir, "pools.json"), pools)
}

// Open opens the books of a node that has some. The error is fs.ErrNotExist if not.
func Open(root, node string) (*Store, error) {
	s := &Store{Node: node, root: root, dir: filepath.Join(root, node)}
	_, err := os.Stat(filepath.Join(s.dir, "pools.json"))
	return s, err
}

// Others opens the books of all other nodes, sorted by name.
func (s *Store) Others() ([]*Store, error) {
	entries, err := os.ReadDir(s.root)
	if err != nil {
		return nil, err
	}
	var stores []*Store
	for _, e := range entries {
		if !e.IsDir() || e.Name() == s.Node {
			continue
		}
		other, err := Open(s.root, e.Name())
		switch {
		case errors.Is(err, fs.ErrNotExist): // not a node
		case err != nil:
			return nil, err
		default:
			other.Fault = s.Fault
			stores = append(stores, other)
		}
	}
	return stores, nil
}

// Step marks a step for Fault.
func (s *Store) Step(name string) {
	if s.Fault != nil {
		s.Fault(name)
	}
}

func (s *Store) file(id string) string { return filepath.Join(s.dir, "volumes", id+".json") }

// books are the books while they are locked.
type books struct {
	pools   []Pool
	volumes map[string]*Volume
}

func (s *Store) locked(do func(books) error) error {
	unlock, err := lockFolder(s.dir)
	if err != nil {
		return err
	}
	defer unlock()
	b := books{volumes: map[string]*Volume{}}
	if err := read(filepath.Join(s.dir, "pools.json"), &b.pools); err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(s.dir, "volumes"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue // left behind by a crash before it was renamed
		}
		v := &Volume{}
		if err := read(filepath.Join(s.dir, "volumes", e.Name()), v); err != nil {
			return err
		}
		b.volumes[v.ID] = v
	}
	return do(b)
}

// room returns what is left of the pools with the names, or of all if there are none.
func (b books) room(names []string) []Room {
	var rooms []Room
	for _, p := range b.pools {
		if len(names) > 0 && !slices.Contains(names, p.Name) {
			continue
		}
		available := p.Size.Value()
		for _, v := range b.volumes {
			if v.Pool == p.Name && v.TakesRoom() {
				available -= v.CapacityBytes
			}
		}
		rooms = append(rooms, Room{Pool: p, AvailableBytes: max(available, 0)})
	}
	return rooms
}

// Rooms returns what is left of the pools with the names, or of all pools if there are
// none, in the order of the configuration. Pools that the node does not have are left
// out.
func (s *Store) Rooms(names []string) (rooms []Room, err error) {
	err = s.locked(func(b books) error {
		rooms = b.room(names)
		return nil
	})
	return rooms, err
}

// Volumes returns what the node knows of volumes, sorted by ID.
func (s *Store) Volumes() (volumes []Volume, err error) {
	err = s.locked(func(b books) error {
		for _, id := range slices.Sorted(maps.Keys(b.volumes)) {
			volumes = append(volumes, *b.volumes[id])
		}
		return nil
	})
	return volumes, err
}

// Get returns what the node knows of a volume, or ErrNotFound.
func (s *Store) Get(id string) (volume Volume, err error) {
	return s.Update(id, nil)
}

// Update changes what the node knows of a volume, if change returns no error, and
// returns the result. Nothing else reads or changes it meanwhile, so change may look
// and then decide. It must not change ID, Pool and CapacityBytes.
func (s *Store) Update(id string, change func(*Volume) error) (volume Volume, err error) {
	err = s.locked(func(b books) error {
		v := b.volumes[id]
		if v == nil {
			return fmt.Errorf("%w: %s on %s", ErrNotFound, id, s.Node)
		}
		if change != nil {
			if err := change(v); err != nil {
				return err
			}
			if err := s.write(s.file(id), v); err != nil {
				return err
			}
		}
		volume = *v
		return nil
	})
	return volume, err
}

// Reserve takes the room for a volume, in the allowed pool that it fills best, and of
// several the one whose name comes first. If the volume takes room already, it is
// returned as it is. ErrNoRoom: nothing has changed.
func (s *Store) Reserve(v Volume) (volume Volume, err error) {
	err = s.locked(func(b books) error {
		if known := b.volumes[v.ID]; known != nil && known.TakesRoom() {
			volume = *known
			return nil
		}
		rooms := slices.DeleteFunc(b.room(v.Pools), func(r Room) bool { return r.AvailableBytes < v.CapacityBytes })
		if len(rooms) == 0 {
			return fmt.Errorf("%w for %d bytes on %s", ErrNoRoom, v.CapacityBytes, s.Node)
		}
		best := slices.MinFunc(rooms, func(a, b Room) int {
			return cmp.Or(cmp.Compare(a.AvailableBytes, b.AvailableBytes), strings.Compare(a.Pool.Name, b.Pool.Name))
		})
		v.Pool = best.Pool.Name
		volume = v
		return s.write(s.file(v.ID), v)
	})
	return volume, err
}

// Resize makes a volume larger in its pool, or returns ErrNoRoom. One that is large
// enough stays as it is.
func (s *Store) Resize(id string, bytes int64) (volume Volume, err error) {
	err = s.locked(func(b books) error {
		v := b.volumes[id]
		if v == nil {
			return fmt.Errorf("%w: %s on %s", ErrNotFound, id, s.Node)
		}
		volume = *v
		if bytes <= v.CapacityBytes {
			return nil
		}
		for _, r := range b.room([]string{v.Pool}) {
			if r.AvailableBytes >= bytes-v.CapacityBytes {
				v.CapacityBytes = bytes
				volume = *v
				return s.write(s.file(id), v)
			}
		}
		return fmt.Errorf("%w for %d bytes in pool %s on %s", ErrNoRoom, bytes, v.Pool, s.Node)
	})
	return volume, err
}
