package pool

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/klog/v2"
)

var (
	// ErrNoRoom is returned when no pool has room for a volume.
	ErrNoRoom = errors.New("no pool has enough room")
	// ErrNotFound is returned for volumes that the node does not know.
	ErrNotFound = errors.New("volume not found")
	// ErrAway is returned while the books cannot be read: what is in them may still hold.
	ErrAway = errors.New("the books cannot be read")
)

// Store has the books of one node. All methods can be called in parallel, also from
// several processes.
type Store struct {
	// Node is the name of the node.
	Node string
	// Fault, if not nil, is called before and after each change of the disk. Tests
	// use it to end a call there, as kill -9 does.
	Fault func(step string)
	// Record, if not nil, is told of each volume that takes room ("takes", then "taken"), finds none ("refused")
	// or gives it back ("gives back", "given back") on a node, in that order: nobody else uses the books meanwhile.
	Record func(event, node string, v Volume)

	// dir has the books, and data the folders of the pools.
	dir, data string
	// pools are only known in the books of the driver's own node.
	pools []Pool
	// isPeer is whether they are the books of another node, which alone touches its data.
	isPeer bool
	// owned is the file whose lock says that the driver of the node runs.
	owned *os.File
}

// Room is what is left of a pool.
type Room struct {
	Pool Pool
	// AvailableBytes is how much room there is for new volumes, at least 0.
	AvailableBytes int64
}

// Create opens the books of a node for the driver of that node, which says what pools
// there are. The disks of those that are new have to be mounted. One that cannot be written takes away no other pool.
func Create(root, node string, pools []Pool) (*Store, error) {
	if !validName(node) {
		return nil, fmt.Errorf("node %q: expected a name of letters, digits, and single . - _ between them", node)
	}
	s := &Store{Node: node, dir: filepath.Join(root, "books", node), data: filepath.Join(root, "pools", node), pools: pools}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	return s, s.locked(func(map[string]*Volume) error {
		for _, p := range pools {
			err := s.addPool(p.Name)
			if errors.Is(err, errHasData) {
				return err
			}
			if err != nil {
				klog.Background().Error(err, "The disk of a pool gets its ID at the next start", "pool", p.Name)
			}
		}
		return nil
	})
}

// Others opens the books of all other nodes, sorted by name.
func (s *Store) Others() ([]*Store, error) {
	root := filepath.Dir(s.dir)
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAway, err)
	}
	var stores []*Store
	for _, e := range entries {
		if e.Name() != s.Node && e.IsDir() && validName(e.Name()) {
			stores = append(stores, &Store{Node: e.Name(), Fault: s.Fault, Record: s.Record, isPeer: true,
				dir: filepath.Join(root, e.Name()), data: filepath.Join(filepath.Dir(root), "pools", e.Name())})
		}
	}
	return stores, nil
}

// Sees tells whether there are books of a node.
func (s *Store) Sees(node string) bool {
	_, err := os.Stat(filepath.Join(filepath.Dir(s.dir), node))
	return err == nil
}

// Step marks a step for Fault.
func (s *Store) Step(name string) {
	if s.Fault != nil {
		s.Fault(name)
	}
}

func (s *Store) record(event string, v Volume) {
	if s.Record != nil {
		s.Record(event, s.Node, v)
	}
}

// RecordAll begins the record: with the pools and their sizes ("pool"), then the volumes that there are ("has"),
// then "started".
func (s *Store) RecordAll() error {
	return s.locked(func(volumes map[string]*Volume) error {
		for _, p := range s.pools {
			s.record("pool", Volume{Pool: p.Name, CapacityBytes: p.Size.Value()})
		}
		for _, v := range volumes {
			s.record("has", *v)
		}
		s.record("started", Volume{})
		return nil
	})
}

func (s *Store) file(id string) string { return filepath.Join(s.dir, id+".json") }

// lock waits until nothing else reads or changes the books.
func (s *Store) lock() (unlock func(), err error) {
	if unlock, err = lockFolder(s.dir); err != nil {
		err = fmt.Errorf("%w, of node %s: %w", ErrAway, s.Node, err)
	}
	return unlock, err
}

// locked does something with all volumes while nothing else reads or changes the books.
func (s *Store) locked(do func(volumes map[string]*Volume) error) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("%w, of node %s: %w", ErrAway, s.Node, err)
	}
	volumes := map[string]*Volume{}
	for _, file := range files {
		id, ok := strings.CutSuffix(file.Name(), ".json")
		if !ok || !validID(id) { // such as what a crash has left of one
			continue
		}
		if volumes[id], err = s.read(id); err != nil {
			return err
		}
	}
	return do(volumes)
}

// read returns the record of a volume. What another node has written is checked.
func (s *Store) read(id string) (*Volume, error) {
	if !validID(id) {
		return nil, fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	v := &Volume{}
	data, err := readFile(s.file(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s on %s", ErrNotFound, id, s.Node)
	}
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err == nil {
		err = v.check(id)
	}
	if err != nil {
		return nil, fmt.Errorf("%w, of node %s: %s: %w", ErrAway, s.Node, id, err)
	}
	v.Path = s.path(*v)
	return v, nil
}

func (s *Store) path(v Volume) string { return filepath.Join(s.folder(v.Pool), v.ID) }

// room returns what is left of the pools with the names, or of all if there are none. It leaves out those
// whose disks are not mounted.
func (s *Store) room(volumes map[string]*Volume, names []string) []Room {
	var rooms []Room
	for _, p := range s.pools {
		if len(names) > 0 && !slices.Contains(names, p.Name) {
			continue
		}
		if s.mounted(p.Name, s.folder(p.Name)) != nil {
			continue
		}
		available := p.Size.Value()
		for _, v := range volumes {
			if v.Pool == p.Name {
				available -= v.CapacityBytes
			}
		}
		rooms = append(rooms, Room{Pool: p, AvailableBytes: max(available, 0)})
	}
	return rooms
}

// Rooms returns what is left of the pools with the names, or of all pools if there are
// none, sorted by name. Pools that the node does not have, or whose disks are not mounted, are left out.
func (s *Store) Rooms(names []string) (rooms []Room, err error) {
	err = s.locked(func(volumes map[string]*Volume) error {
		rooms = s.room(volumes, names)
		return nil
	})
	return rooms, err
}

// Volumes returns what the node knows of volumes, sorted by ID.
func (s *Store) Volumes() (all []Volume, err error) {
	err = s.locked(func(volumes map[string]*Volume) error {
		for _, id := range slices.Sorted(maps.Keys(volumes)) {
			all = append(all, *volumes[id])
		}
		return nil
	})
	return all, err
}

// Get returns what the node knows of a volume, or ErrNotFound.
func (s *Store) Get(id string) (volume Volume, err error) {
	return s.Update(id, nil)
}

// Update changes what the node knows of a volume, if change returns no error, and
// returns the result. Nothing else reads or changes it meanwhile, so change may look
// and then decide. It must not change what Reserve has set.
func (s *Store) Update(id string, change func(*Volume) error) (volume Volume, err error) {
	unlock, err := s.lock()
	if err != nil {
		return volume, err
	}
	defer unlock()
	v, err := s.read(id)
	if err == nil && change != nil {
		if err = change(v); err == nil {
			err = s.write(*v)
		}
	}
	if err != nil {
		return volume, err
	}
	return *v, nil
}

// Reserve takes the room for a volume, in the allowed pool that it fills best, and of
// several the one whose name comes first. If the volume takes room already, it is
// returned as it is. ErrNoRoom: nothing has changed.
func (s *Store) Reserve(v Volume) (volume Volume, err error) {
	err = s.locked(func(volumes map[string]*Volume) error {
		if known := volumes[v.ID]; known != nil {
			volume = *known
			return nil
		}
		rooms := slices.DeleteFunc(s.room(volumes, v.Pools), func(r Room) bool { return r.AvailableBytes < v.CapacityBytes })
		if len(rooms) == 0 {
			s.record("refused", v)
			return fmt.Errorf("%w for %d bytes on %s", ErrNoRoom, v.CapacityBytes, s.Node)
		}
		best := slices.MinFunc(rooms, func(a, b Room) int {
			return cmp.Or(cmp.Compare(a.AvailableBytes, b.AvailableBytes), strings.Compare(a.Pool.Name, b.Pool.Name))
		})
		v.Pool = best.Pool.Name
		v.Path = s.path(v)
		volume = v
		if err := v.check(v.ID); err != nil {
			return err
		}
		s.record("takes", v)
		if err := s.write(v); err != nil {
			return err
		}
		s.record("taken", v)
		return nil
	})
	return volume, err
}
