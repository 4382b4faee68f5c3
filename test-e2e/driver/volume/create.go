package volume

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/klog/v2"

	"capacityv2.internal/test-e2e/driver/pool"
)

// Request is what a new volume has to be.
type Request struct {
	// Name identifies the request: one that is repeated gets the same volume.
	Name string
	// Bytes is the size. LimitBytes is how large the volume may be if it exists
	// already; 0: any size.
	Bytes, LimitBytes int64
	// Pools are the names of the pools that are allowed. Empty: all.
	Pools []string
	// Copies is the number of nodes that keep a copy, this one included.
	Copies int
}

// Create creates a volume, or returns the one that exists. Errors: ResourceExhausted if
// there is no room on this node or for another copy, AlreadyExists if a volume with the
// name does not fit the request.
func (m *Manager) Create(ctx context.Context, r Request) (pool.Volume, error) {
	id := pool.ID(r.Name, m.Store.Node)
	m.calls.LockKey(id)
	defer func() { _ = m.calls.UnlockKey(id) }()

	known, err := m.Store.Get(id)
	if err != nil && !errors.Is(err, pool.ErrNotFound) {
		return pool.Volume{}, internal(err)
	}
	if err == nil {
		fits := known.CapacityBytes >= r.Bytes && (r.LimitBytes == 0 || known.CapacityBytes <= r.LimitBytes) &&
			slices.Equal(known.Pools, r.Pools) && (known.State == pool.Creating || len(known.Copies) == r.Copies)
		switch {
		case known.State == pool.Deleting || known.State == pool.Leaving:
			return pool.Volume{}, status.Errorf(codes.Aborted, "volume %s is being deleted", id)
		case !fits:
			return pool.Volume{}, status.Errorf(codes.AlreadyExists, "volume %s exists, with %d bytes in pool %s, which does not fit the request", id, known.CapacityBytes, known.Pool)
		case known.State == pool.Ready:
			return known, nil
		}
	}
	v, err := m.create(ctx, id, r)
	if err != nil && ctx.Err() == nil {
		// Whoever asked may not ask again.
		err = errors.Join(err, m.discardAll(id))
	}
	return v, internal(err)
}

func (m *Manager) create(ctx context.Context, id string, r Request) (pool.Volume, error) {
	v, err := m.Store.Reserve(pool.Volume{ID: id, Name: r.Name, State: pool.Creating, CapacityBytes: r.Bytes, Pools: r.Pools})
	if err != nil {
		return v, err
	}
	copies, err := m.reserveCopies(v, r)
	if err != nil {
		return v, err
	}
	select {
	case <-time.After(m.CreateDelay):
	case <-ctx.Done():
		return v, status.FromContextError(ctx.Err()).Err()
	}
	stores := append(copies, m.Store) // this one last: with it, the volume exists
	nodes := []string{m.Store.Node}
	for _, s := range copies {
		nodes = append(nodes, s.Node)
	}
	for _, s := range stores {
		if v, err = m.makeData(s, id); err != nil {
			return v, err
		}
		v, err = s.Update(id, func(v *pool.Volume) error {
			v.State, v.Copies = pool.Ready, nodes
			return nil
		})
		if err != nil {
			return v, err
		}
	}
	klog.FromContext(ctx).Info("Created volume", "volume", id, "name", r.Name, "pool", v.Pool, "bytes", v.CapacityBytes, "copies", nodes)
	return v, nil
}

// reserveCopies takes the room for the other copies, on the nodes with the most room.
func (m *Manager) reserveCopies(v pool.Volume, r Request) ([]*pool.Store, error) {
	if r.Copies < 2 {
		return nil, nil
	}
	others, err := m.Store.Others()
	if err != nil {
		return nil, err
	}
	type candidate struct {
		store *pool.Store
		room  int64
	}
	var candidates []candidate
	for _, s := range others {
		rooms, err := s.Rooms(r.Pools)
		if err != nil {
			return nil, err
		}
		for _, room := range rooms {
			candidates = append(candidates, candidate{s, room.AvailableBytes})
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.room, a.room), strings.Compare(a.store.Node, b.store.Node))
	})
	var stores []*pool.Store
	for _, c := range candidates {
		if len(stores) == r.Copies-1 || slices.Contains(stores, c.store) {
			continue
		}
		_, err := c.store.Reserve(v)
		if err == nil {
			stores = append(stores, c.store)
		} else if !errors.Is(err, pool.ErrNoRoom) {
			return nil, err
		}
	}
	if len(stores) < r.Copies-1 {
		return nil, status.Errorf(codes.ResourceExhausted, "%d other nodes have room for a copy; expected %d", len(stores), r.Copies-1)
	}
	return stores, nil
}

// makeData makes the empty folder of a volume on a node.
func (m *Manager) makeData(s *pool.Store, id string) (pool.Volume, error) {
	v, err := s.Get(id)
	if err != nil {
		return v, err
	}
	dir, err := s.DataDir(v)
	if err != nil {
		return v, err
	}
	// The group and others, because a pod may run as any user.
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
		return v, err
	}
	if err := os.Chmod(dir, 0o777); err != nil { // whatever the umask
		return v, err
	}
	if err := m.Backing.Prepare(dir, v.CapacityBytes); err != nil {
		return v, err
	}
	return v, pool.SyncFolder(filepath.Dir(dir))
}
