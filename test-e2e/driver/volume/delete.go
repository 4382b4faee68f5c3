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

// Delete deletes a volume; nodes with other copies of it remove them themselves. It can be repeated. It fails on a node
// that does not own the volume: external-provisioner with --node-deployment asks every
// node to delete a volume whose PersistentVolume has no node affinity, and takes the
// first OK for the end of the volume.
//
// The copies are fenced first, so that none is staged any more. A volume for which that was
// begun is not served again, on no node.
func (m *Manager) Delete(ctx context.Context, id string) error {
	m.calls.LockKey(id)
	defer func() { _ = m.calls.UnlockKey(id) }()

	own, others, err := m.find(id)
	if own == nil { // What is fenced for deletion is never served again.
		others = slices.DeleteFunc(others, func(r replica) bool { return r.volume.FencedFor == pool.Deletion })
	}
	switch {
	case err != nil:
		return err
	case own == nil && len(others) == 0:
		return m.checkGone(id)
	case own == nil || own.State == pool.Rebuilding || slices.ContainsFunc(others, func(r replica) bool { return r.volume.Generation > own.Generation }):
		// One that is complete may be where the volume is.
		return status.Errorf(codes.FailedPrecondition, "node %s does not own volume %s", m.Store.Node, id)
	}
	// The own copy is the first that is fenced.
	if err := m.fence(ctx, append([]replica{{m.Store, *own}}, others...), pool.Deletion); err != nil {
		return err
	}
	if err := m.Store.Discard(*own); err != nil {
		return internal(err)
	}
	klog.FromContext(ctx).Info("Deleted volume", "volume", id)
	return nil
}

// checkGone returns no error if a volume that is in no books is gone. If those of the node that
// made it are not among them, it may be there.
func (m *Manager) checkGone(id string) error {
	if maker := pool.Maker(id); maker != "" && !m.Store.Sees(maker) {
		return status.Errorf(codes.FailedPrecondition, "node %s does not own volume %s, and cannot look into the books of node %s", m.Store.Node, id, maker)
	}
	return nil
}

// Release ends a copy that goes on, removes what it has left, unmounts the volume, and says
// that it is not staged any more. If the copy does not end before the call, the error is
// Aborted.
func (m *Manager) Release(ctx context.Context, id, path string) error {
	if err := m.end(ctx, id); err != nil {
		return err
	}
	m.calls.LockKey(id)
	defer func() { _ = m.calls.UnlockKey(id) }()
	return m.release(ctx, id, path)
}

func (m *Manager) release(ctx context.Context, id, path string) error {
	own, err := m.Store.Get(id)
	isKnown := !errors.Is(err, pool.ErrNotFound)
	if err != nil && isKnown {
		return internal(err)
	}
	isElsewhere := own.StagedAt != "" && own.StagedAt != path
	if isElsewhere {
		own.Path = "" // What is attached is in use.
	}
	if err := m.unmount(own, path); err != nil {
		return status.Errorf(codes.Internal, "unmount volume %s: %v", id, err)
	}
	if !isKnown || isElsewhere {
		return nil
	}
	if own.StagedAt == "" {
		return internal(m.drop(ctx, own))
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
