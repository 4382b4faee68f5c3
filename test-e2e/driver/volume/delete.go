package volume

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/klog/v2"

	"capacityv2.internal/test-e2e/driver/pool"
)

// Delete deletes a volume and all of its copies. It can be repeated. It fails on a node
// that does not own the volume: external-provisioner with --node-deployment asks every
// node to delete a volume whose PersistentVolume has no node affinity, and takes the
// first OK for the end of the volume.
func (m *Manager) Delete(ctx context.Context, id string) error {
	creator := pool.Creator(id)
	if creator == "" {
		return nil // No driver of this name can have it.
	}
	m.calls.LockKey(id)
	defer func() { _ = m.calls.UnlockKey(id) }()

	own, others, err := m.find(id)
	if err != nil {
		return err
	}
	switch {
	case own == nil && creator == m.Store.Node && !slices.ContainsFunc(others, func(r replica) bool { return r.volume.TakesRoom() }):
		return nil
	case own == nil, own.State == pool.Moved, own.State == pool.Leaving, own.State == pool.Rebuilding, own.State == pool.Rebuilt:
		return status.Errorf(codes.FailedPrecondition, "node %s does not own volume %s", m.Store.Node, id)
	}
	for _, r := range append(others, replica{m.Store, *own}) {
		if r.volume.StagedAt != "" && r.volume.FencedFor == "" {
			return status.Errorf(codes.FailedPrecondition, "volume %s is staged on node %s", id, r.store.Node)
		}
	}
	if err := m.discardAll(id); err != nil {
		return internal(err)
	}
	klog.FromContext(ctx).Info("Deleted volume", "volume", id)
	return nil
}

// Expand makes a volume and all of its copies larger. Errors: ResourceExhausted if a
// pool has no room for that.
func (m *Manager) Expand(ctx context.Context, id string, bytes int64) (pool.Volume, error) {
	m.calls.LockKey(id)
	defer func() { _ = m.calls.UnlockKey(id) }()

	v, err := m.Get(id)
	if err != nil {
		return v, err
	}
	if v.FencedFor != "" {
		return v, status.Errorf(codes.Aborted, "volume %s is being copied to node %s", id, v.FencedFor)
	}
	_, others, err := m.find(id)
	if err != nil {
		return v, err
	}
	for _, r := range others {
		if slices.Contains(v.Copies, r.store.Node) {
			if _, err := r.store.Resize(id, bytes); err != nil {
				return v, internal(err)
			}
		}
	}
	v, err = m.Store.Resize(id, bytes)
	if err != nil {
		return v, internal(err)
	}
	dir, err := m.Store.DataDir(v)
	if err != nil {
		return v, internal(err)
	}
	klog.FromContext(ctx).Info("Expanded volume", "volume", id, "bytes", v.CapacityBytes)
	return v, internal(m.Backing.Prepare(dir, v.CapacityBytes))
}

// Release ends a copy that goes on, removes what it has left, unmounts the volume, and says
// that it is not staged any more, after it has brought the other copies up to date. If the
// copy does not end before the call, the error is Aborted.
func (m *Manager) Release(ctx context.Context, id string, unmount func() error) error {
	if err := m.end(ctx, id); err != nil {
		return err
	}
	m.calls.LockKey(id)
	defer func() { _ = m.calls.UnlockKey(id) }()

	if err := unmount(); err != nil {
		return status.Errorf(codes.Internal, "unmount volume %s: %v", id, err)
	}
	return m.release(ctx, id)
}

func (m *Manager) release(ctx context.Context, id string) error {
	own, others, err := m.find(id)
	if err != nil || own == nil {
		return err
	}
	if own.StagedAt == "" {
		return internal(m.drop(ctx, *own))
	}
	if own.FencedFor == "" && own.HasData() {
		for _, r := range others {
			if !slices.Contains(own.Copies, r.store.Node) || !r.volume.TakesRoom() || r.volume.Generation >= own.Generation {
				continue
			}
			if err := m.bringUpToDate(context.WithoutCancel(ctx), replica{m.Store, *own}, r); err != nil {
				// It is copied when that node asks for the volume.
				klog.FromContext(ctx).Error(err, "Copy stays behind", "volume", id, "node", r.store.Node)
			}
		}
	}
	_, err = m.Store.Update(id, func(v *pool.Volume) error {
		v.StagedAt = ""
		return nil
	})
	if errors.Is(err, pool.ErrNotFound) {
		return nil
	}
	return internal(err)
}

func (m *Manager) bringUpToDate(ctx context.Context, from, to replica) error {
	if err := m.copyData(ctx, from, to); err != nil {
		return err
	}
	_, err := to.store.Update(to.volume.ID, func(v *pool.Volume) error {
		v.State, v.Generation = pool.Ready, from.volume.Generation
		return nil
	})
	return err
}
