package volume

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/klog/v2"

	"capacityv2.internal/test-e2e/driver/pool"
)

// Create creates a volume with the name, size, kind and allowed pools that are wanted, or
// returns the one with the name, if it has at most limit bytes (0: any). Errors: ResourceExhausted if
// there is no room on this node, AlreadyExists if a volume with the name does not fit the
// request, Aborted if it is being deleted or moved, or is elsewhere, Unavailable if the books cannot be
// reached. Only a volume of which nobody has been told is removed again.
func (m *Manager) Create(ctx context.Context, wanted pool.Volume, limit int64) (pool.Volume, error) {
	id := pool.ID(wanted.Name, m.Store.Node)
	m.calls.LockKey(id)
	defer func() { _ = m.calls.UnlockKey(id) }()

	wanted.ID, wanted.State = id, pool.Creating
	own, err := m.own(id)
	if err == nil && (own == nil || own.State != pool.Ready || own.FencedFor != "") {
		err = m.ask(ctx, Make, wanted) // It may be elsewhere. The API server knows, and no node has to answer.
	}
	switch {
	case err != nil:
		return pool.Volume{}, err
	case own != nil && (isHalf(*own) || own.FencedFor == pool.Deletion):
		return pool.Volume{}, status.Errorf(codes.Aborted, "volume %s is being deleted or moved", id)
	case own != nil && (own.CapacityBytes < wanted.CapacityBytes || limit > 0 && own.CapacityBytes > limit || own.Block != wanted.Block || !slices.Equal(own.Pools, wanted.Pools)):
		return pool.Volume{}, status.Errorf(codes.AlreadyExists, "volume %s exists, with %d bytes in pool %s, which does not fit the request", id, own.CapacityBytes, own.Pool)
	case own != nil && own.State == pool.Ready:
		return *own, nil
	}
	v, err := m.Store.Reserve(wanted)
	if err != nil {
		return v, internal(err)
	}
	ready, err := m.makeData(v)
	if err != nil {
		err = errors.Join(err, m.Store.Discard(v)) // Whoever asked may not ask again.
	}
	if err == nil {
		klog.FromContext(ctx).Info("Created volume", "volume", id, "name", v.Name, "pool", v.Pool, "bytes", v.CapacityBytes)
	}
	return ready, internal(err)
}

func (m *Manager) makeData(v pool.Volume) (pool.Volume, error) {
	m.Store.Step("make data")
	if err := m.Store.Mounted(v); err != nil {
		return v, err
	}
	if err := m.Backing.Make(v, true); err != nil {
		return v, err
	}
	m.Store.Step("made data")
	if err := pool.SyncFolder(filepath.Dir(v.Path)); err != nil {
		return v, err
	}
	return m.Store.Update(v.ID, func(v *pool.Volume) error {
		v.State = pool.Ready
		return nil
	})
}
