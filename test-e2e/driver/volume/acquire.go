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

// Acquire makes this node the one that has a volume, mounts it at a path with options,
// and returns the folder with the data. If the data is elsewhere, it is copied. That
// may take longer than the caller waits: then it goes on, and the next call joins it.
//
// Errors: ResourceExhausted if there is no room, FailedPrecondition if another copy
// cannot be fenced, reached or left; nothing has changed then, but that the other copies
// may have been fenced. Internal if it cannot be mounted; it is not staged then.
func (m *Manager) Acquire(ctx context.Context, id, path string, options ...string) (dir string, err error) {
	done := m.staging.DoChan(id, func() (any, error) {
		ctx := context.WithoutCancel(ctx)
		v, err := m.acquire(ctx, id, path)
		if err != nil {
			return "", err
		}
		return m.mount(ctx, v, path, options)
	})
	select {
	case r := <-done:
		dir, _ := r.Val.(string)
		return dir, internal(r.Err)
	case <-ctx.Done():
		return "", status.Errorf(codes.Aborted, "volume %s is still being copied", id)
	}
}

func (m *Manager) acquire(ctx context.Context, id, path string) (pool.Volume, error) {
	own, others, err := m.find(id)
	if err != nil {
		return pool.Volume{}, err
	}
	if own != nil && own.HasData() && own.StagedAt != "" {
		if own.FencedFor != "" {
			return *own, status.Errorf(codes.FailedPrecondition, "node %s has taken volume %s over while it was staged here", own.FencedFor, id)
		}
		m.giveUp(ctx, *own, others)
		return *own, nil
	}
	source, err := m.newest(id, own, others)
	if err != nil {
		return pool.Volume{}, err
	}
	others = slices.DeleteFunc(others, func(r replica) bool { return !r.volume.TakesRoom() })
	if source.store == m.Store {
		err = m.takeHome(ctx, source.volume, others)
	} else {
		err = m.rebuild(ctx, source, others)
	}
	if err != nil {
		return pool.Volume{}, err
	}
	v, err := m.commit(id, path, source.volume.Generation, others)
	if err != nil {
		return v, internal(err)
	}
	m.giveUp(ctx, v, others)
	return v, nil
}

// mount mounts a volume that this node has. If that fails, the volume is released: the
// kubelet does not unstage what it could not stage.
func (m *Manager) mount(ctx context.Context, v pool.Volume, path string, options []string) (dir string, err error) {
	dir, err = m.Store.DataDir(v)
	if err == nil {
		err = m.Backing.Mount(dir, path, options)
	}
	if err == nil {
		return dir, nil
	}
	if mounted, checkErr := m.Backing.IsMounted(path); checkErr == nil && !mounted && v.StagedAt == path {
		err = errors.Join(err, m.Release(ctx, v.ID))
	}
	return "", status.Errorf(codes.Internal, "mount volume %s: %v", v.ID, err)
}

// takeHome makes the copy of this node, which has the data, the one that is served.
func (m *Manager) takeHome(ctx context.Context, own pool.Volume, others []replica) error {
	err := m.place(ctx, own.ID)
	if own.FencedFor != "" {
		// Another node has begun to take the volume over, so the controller half has
		// to decide for one of both.
		if err != nil {
			return err
		}
		if err := m.unfence(own.ID); err != nil {
			return err
		}
	} else if err != nil && m.Placement != nil {
		// No other node can have it, so this one serves it even if nobody can be told.
		klog.FromContext(ctx).Error(err, "The PersistentVolume may not name this node", "volume", own.ID)
	}
	return m.fence(ctx, others)
}

// rebuild makes a copy on this node, or brings the one that there is up to date.
func (m *Manager) rebuild(ctx context.Context, source replica, others []replica) (err error) {
	id := source.volume.ID
	defer func() {
		result := "done"
		switch status.Code(err) {
		case codes.OK:
		case codes.ResourceExhausted, codes.FailedPrecondition:
			result = "refused"
		default:
			result = "failed"
		}
		rebuilds.WithLabelValues(result).Inc()
	}()
	wanted := source.volume
	wanted.State, wanted.Generation, wanted.FencedFor, wanted.StagedAt = pool.Rebuilding, 0, "", ""
	wanted.Copies = []string{m.Store.Node}
	own, err := m.Store.Reserve(wanted)
	if err != nil {
		return internal(err)
	}
	if own.State == pool.Rebuilding || own.State == pool.Rebuilt {
		defer func() {
			// The pod may go elsewhere, so the room is given back. The call comes again
			// soon if the controller half only was away.
			if err != nil && status.Code(err) != codes.Unavailable {
				err = errors.Join(err, m.Store.Discard(id, true))
			}
		}()
	}
	if own.FencedFor != "" { // of an earlier attempt; the data is elsewhere now
		if err := m.unfence(id); err != nil {
			return err
		}
	}
	if err := m.fence(ctx, others); err != nil {
		return err
	}
	if own.State != pool.Rebuilt || own.Generation != source.volume.Generation {
		if err := m.copyData(source, replica{m.Store, own}); err != nil {
			return err
		}
		_, err := m.Store.Update(id, func(v *pool.Volume) error {
			if v.State == pool.Rebuilding {
				v.State = pool.Rebuilt
			}
			v.Generation = source.volume.Generation
			return nil
		})
		if err != nil {
			return internal(err)
		}
	}
	if err := m.place(ctx, id); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Rebuilt volume", "volume", id, "from", source.store.Node, "pool", own.Pool, "bytes", own.CapacityBytes)
	return nil
}

// newest returns the copy that has the data: the one of this node, if there are several.
func (m *Manager) newest(id string, own *pool.Volume, others []replica) (replica, error) {
	all := others
	if own != nil {
		all = append([]replica{{m.Store, *own}}, others...)
	}
	var best replica
	for _, r := range all {
		if r.volume.HasData() && (best.store == nil || r.volume.Generation > best.volume.Generation) {
			best = r
		}
	}
	if best.store == nil {
		return best, status.Errorf(codes.NotFound, "no copy of volume %s can be reached", id)
	}
	for _, node := range best.volume.Copies {
		if !slices.ContainsFunc(all, func(r replica) bool { return r.store.Node == node }) {
			return best, status.Errorf(codes.FailedPrecondition, "the copy of volume %s on node %s cannot be reached; it may have newer data", id, node)
		}
	}
	return best, nil
}

// fence makes sure that no other node stages a copy, or writes to one.
func (m *Manager) fence(ctx context.Context, others []replica) error {
	for _, r := range others {
		off := false
		set := func(v *pool.Volume) error {
			if v.StagedAt != "" && !off {
				return status.Errorf(codes.FailedPrecondition, "volume %s is still staged on node %s, which may write to it", v.ID, r.store.Node)
			}
			v.FencedFor = m.Store.Node
			return nil
		}
		_, err := r.store.Update(r.volume.ID, set)
		if status.Code(err) == codes.FailedPrecondition && m.Placement != nil {
			if m.Placement.Fence(ctx, r.volume.ID, r.store.Node) == nil {
				off = true
				_, err = r.store.Update(r.volume.ID, set)
			}
		}
		if err != nil && !errors.Is(err, pool.ErrNotFound) {
			return internal(err)
		}
	}
	return nil
}

func (m *Manager) unfence(id string) error {
	_, err := m.Store.Update(id, func(v *pool.Volume) error {
		v.FencedFor = ""
		return nil
	})
	return internal(err)
}

func (m *Manager) place(ctx context.Context, id string) error {
	if m.Placement == nil {
		return status.Error(codes.FailedPrecondition, "there is no controller half, so volumes stay where they are")
	}
	return m.Placement.Place(ctx, id, m.Store.Node)
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
		v.State, v.Generation, v.StagedAt = pool.Ready, generation+1, path
		return nil
	})
}

// giveUp removes copies that the volume does not keep.
func (m *Manager) giveUp(ctx context.Context, own pool.Volume, others []replica) {
	for _, o := range others {
		if slices.Contains(own.Copies, o.store.Node) || !o.volume.TakesRoom() {
			continue
		}
		if err := o.store.Discard(own.ID, true); err != nil {
			// The next call tries it again.
			klog.FromContext(ctx).Error(err, "Old copy was not removed", "volume", own.ID, "node", o.store.Node)
		}
	}
}
