package volume

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"capacityv2.internal/test-e2e/driver/pool"
)

// Acquire makes this node the one that has a volume, and mounts it at a path with options.
// If the data is elsewhere, it is copied. That may take longer than the caller waits: then
// it goes on, and the next call joins it.
//
// The books of other nodes are read only if the data may be there: one that hangs does not keep volumes from
// being served that are here.
//
// Errors: Aborted if it is still being copied, or is or was sent elsewhere,
// ResourceExhausted if there is no room, FailedPrecondition if another copy cannot be
// fenced, Unavailable if one, or the books, cannot be reached; nothing has changed then, but that other
// copies may have been fenced. Internal if it cannot be mounted; it is not staged then. Aborted if that cannot be
// undone, or is in use: the kubelet unstages it.
func (m *Manager) Acquire(ctx context.Context, id, path string, options ...string) error {
	own, err := m.own(id)
	isNamed := err == nil && own != nil && isUncontested(*own) && m.ask(ctx, Named, *own) == nil
	if isStaged := own != nil && own.StagedAt != ""; err == nil && !isNamed && !isStaged {
		err = m.join(ctx, id, func(ctx context.Context) error { return m.copyHere(ctx, id) })
	}
	if err != nil {
		return internal(err)
	}
	return internal(m.serve(ctx, id, path, isNamed, options))
}

// isUncontested tells whether no other node can have begun to take a copy over.
func isUncontested(v pool.Volume) bool {
	return v.State == pool.Ready && v.FencedFor == "" && !v.Contested
}

// serve opens the copy of this node and mounts it. This is done in the call, so that
// nothing is mounted after NodeUnstageVolume.
func (m *Manager) serve(ctx context.Context, id, path string, isNamed bool, options []string) error {
	m.calls.LockKey(id)
	defer func() { _ = m.calls.UnlockKey(id) }()

	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	own, err := m.own(id)
	// Whoever takes it over fences it first.
	isAlone := own != nil && own.State == pool.Ready && (own.StagedAt != "" || isNamed && isUncontested(*own))
	var others []replica
	if err == nil && !isAlone {
		own, others, err = m.find(id)
	}
	if err != nil {
		return err
	}
	v, err := m.open(ctx, id, path, own, others)
	if err != nil {
		return err
	}
	if own.StagedAt == "" {
		// What is mounted there is an old copy, which was taken over while it was staged.
		err = m.unmountAt(path)
	}
	if err == nil {
		err = m.mount(v, path, options)
	}
	if err == nil && !v.Served {
		_, err = m.Store.Update(id, func(v *pool.Volume) error { v.Served = true; return nil })
	}
	if err == nil {
		return nil
	}
	// The kubelet does not unstage what it could not stage. What an earlier call has mounted may be in use.
	code := codes.Aborted
	if mounted, checkErr := isMounted(m.Mounter, staged(v, path)); own.StagedAt == "" || checkErr == nil && !mounted {
		releaseErr := m.release(ctx, id, path)
		if err = errors.Join(err, releaseErr); releaseErr == nil {
			code = codes.Internal
		}
	}
	return status.Errorf(code, "mount volume %s: %v", id, err)
}

// open makes the copy of this node, which is complete, the one that is served.
func (m *Manager) open(ctx context.Context, id, path string, own *pool.Volume, others []replica) (pool.Volume, error) {
	if own != nil && own.State == pool.Ready && own.StagedAt != "" {
		if own.FencedFor != "" {
			// Not final: the kubelet has to unstage it.
			return *own, status.Errorf(codes.Aborted, "node %s has taken volume %s over while it was staged here", own.FencedFor, id)
		}
		if own.StagedAt != path {
			return *own, status.Errorf(codes.FailedPrecondition, "volume %s is staged at %s", id, own.StagedAt)
		}
		return *own, nil
	}
	source, holders, err := m.newest(id, own, others)
	if err != nil {
		return pool.Volume{}, err
	}
	if !slices.Contains(holders, m.Store.Node) {
		return pool.Volume{}, status.Errorf(codes.Aborted, "volume %s has changed on node %s since it was copied", id, source.store.Node)
	}
	err = m.ask(ctx, Place, *own, holders...)
	if err == nil && own.FencedFor != "" {
		// Another node had begun to take it over; the PersistentVolume has decided.
		err = m.unfence(id)
	}
	if err != nil {
		return pool.Volume{}, err
	}
	if err := m.fence(ctx, others, m.Store.Node); err != nil {
		return pool.Volume{}, err
	}
	return m.commit(id, path, source.volume.Generation, others)
}

// newest returns the copy that has the data by the books, that of this node, if there are several, and all nodes that have it.
func (m *Manager) newest(id string, own *pool.Volume, others []replica) (best replica, holders []string, err error) {
	all := others
	if own != nil {
		all = append([]replica{{m.Store, *own}}, others...)
	}
	for _, r := range all {
		if r.volume.State == pool.Ready && (best.store == nil || r.volume.Generation > best.volume.Generation) {
			best = r
		}
	}
	if best.store == nil {
		// Not final: one may be where nobody can look now.
		return best, nil, status.Errorf(codes.Unavailable, "no copy of volume %s can be reached", id)
	}
	for _, r := range all {
		if (r.volume.State == pool.Ready || r.volume.State == pool.Rebuilt) && r.volume.Generation == best.volume.Generation {
			holders = append(holders, r.store.Node)
		}
	}
	return best, holders, nil
}

// fence makes sure that no other node stages a copy, or writes to one: they are for one
// node from now on, or for deletion.
func (m *Manager) fence(ctx context.Context, copies []replica, by string) error {
	for _, r := range copies {
		off := false
		set := func(v *pool.Volume) error {
			if v.StagedAt != "" && !off {
				return status.Errorf(codes.FailedPrecondition, "volume %s is still staged on node %s, which may write to it", v.ID, r.store.Node)
			}
			if v.FencedFor == pool.Deletion && by != pool.Deletion {
				return deleted(v.ID)
			}
			v.FencedFor = by
			return nil
		}
		_, err := r.store.Update(r.volume.ID, set)
		if status.Code(err) == codes.FailedPrecondition && r.store != m.Store && m.Placement.IsOff(ctx, r.store.Node) {
			off = true
			_, err = r.store.Update(r.volume.ID, set)
		}
		if err != nil && !errors.Is(err, pool.ErrNotFound) {
			return internal(err)
		}
	}
	return nil
}

func (m *Manager) unfence(id string) error {
	_, err := m.Store.Update(id, func(v *pool.Volume) error {
		if v.FencedFor == pool.Deletion {
			return deleted(id)
		}
		v.FencedFor, v.Contested = "", true
		return nil
	})
	return internal(err)
}

func deleted(id string) error { return status.Errorf(codes.Aborted, "volume %s is being deleted", id) }

func (m *Manager) ask(ctx context.Context, question Question, v pool.Volume, holders ...string) error {
	return m.Placement.Ask(ctx, question, v, m.Store.Node, holders...)
}

// commit opens the copy of this node for writing, unless another node has taken it over
// meanwhile, or has written.
func (m *Manager) commit(id, path string, generation int64, others []replica) (pool.Volume, error) {
	for _, o := range others {
		v, err := o.store.Get(id)
		if err != nil && !errors.Is(err, pool.ErrNotFound) {
			return v, err
		}
		if err == nil && (v.FencedFor != m.Store.Node || v.Generation > generation) {
			return v, status.Errorf(codes.Aborted, "node %s has taken volume %s back", o.store.Node, id)
		}
	}
	return m.Store.Update(id, func(v *pool.Volume) error {
		if v.FencedFor != "" {
			return status.Errorf(codes.Aborted, "node %s is taking volume %s over", v.FencedFor, id)
		}
		v.State, v.Generation, v.StagedAt, v.Contested = pool.Ready, generation+1, path, false
		return nil
	})
}
