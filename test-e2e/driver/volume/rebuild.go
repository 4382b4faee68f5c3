package volume

import (
	"context"
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/klog/v2"

	"capacityv2.internal/test-e2e/driver/pool"
)

// copyHere copies a volume to this node, unless the data is here. The copy only becomes the
// volume's when it is served.
func (m *Manager) copyHere(ctx context.Context, id string) error {
	source, own, err := m.prepare(ctx, id)
	if err == nil && own == nil {
		return nil
	}
	if err == nil {
		err = m.copyFrom(ctx, source, *own)
	}
	if err != nil && own != nil {
		// The pod may go elsewhere, so the room is given back.
		err = errors.Join(err, m.drop(context.WithoutCancel(ctx), *own))
	}
	return err
}

func (m *Manager) copyFrom(ctx context.Context, source replica, own pool.Volume) error {
	if err := m.copyData(ctx, source, own); err != nil {
		return internal(err)
	}
	_, err := m.Store.Update(own.ID, func(v *pool.Volume) error {
		if v.StagedAt != "" {
			return status.Errorf(codes.Aborted, "volume %s was staged while it was copied", v.ID)
		}
		v.State, v.Generation, v.Served = pool.Rebuilt, source.volume.Generation, false
		return pool.Complete(*v)
	})
	if err != nil {
		err = errors.Join(err, os.RemoveAll(pool.CopyPath(own)))
	}
	if errors.Is(err, pool.ErrNotFound) {
		return status.Errorf(codes.Aborted, "volume %s was deleted while it was copied", own.ID)
	}
	if err == nil {
		klog.FromContext(ctx).Info("Copied volume", "volume", own.ID, "from", source.store.Node, "pool", own.Pool, "bytes", own.CapacityBytes)
	}
	return internal(err)
}

// prepare takes the room for a copy of a volume, and fences the other ones. own is nil if
// there is nothing to copy.
func (m *Manager) prepare(ctx context.Context, id string) (source replica, own *pool.Volume, err error) {
	m.calls.LockKey(id)
	defer func() { _ = m.calls.UnlockKey(id) }()

	own, others, err := m.find(id)
	if err != nil || own != nil && own.State == pool.Ready && own.StagedAt != "" {
		return source, nil, err
	}
	source, holders, err := m.newest(id, own, others)
	if err != nil || slices.Contains(holders, m.Store.Node) {
		return source, nil, err
	}
	// Before anything is given up for it.
	if err := errors.Join(source.store.Mounted(source.volume), m.Backing.Check(source.volume)); err != nil {
		return source, nil, status.Errorf(codes.Unavailable, "the data of volume %s on node %s cannot be read: %v", id, source.store.Node, err)
	}
	wanted := source.volume
	wanted.State, wanted.Generation, wanted.FencedFor, wanted.StagedAt, wanted.Served, wanted.Contested = pool.Rebuilding, 0, "", "", false, false
	if own != nil {
		if err := m.Store.Mounted(*own); err != nil {
			return source, nil, internal(err)
		}
	}
	reserved, err := m.Store.Reserve(wanted)
	if err != nil {
		return source, nil, internal(err)
	}
	// The PersistentVolume says so before the first byte is copied.
	err = m.ask(ctx, Begin, reserved, holders...)
	if err == nil && own != nil { // an old copy, or of an earlier attempt
		err = m.unfence(id)
	}
	if err == nil {
		err = m.fence(ctx, others, m.Store.Node)
	}
	if err == nil && own != nil {
		var half pool.Volume
		half, err = m.Store.Update(id, func(v *pool.Volume) error {
			v.State, v.Generation = pool.Rebuilding, 0
			return nil
		})
		if err == nil {
			reserved = half
		}
	}
	return source, &reserved, internal(err)
}

// copyData makes a copy of another one, under a name that is no volume's. An old one goes first: there may be no
// room for both. If the context ends, so does it, after the step that goes on.
func (m *Manager) copyData(ctx context.Context, from replica, to pool.Volume) (err error) {
	old := to.Path
	to.Path = pool.CopyPath(to)
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(to.Path))
		}
	}()
	if err := errors.Join(os.RemoveAll(old), os.RemoveAll(to.Path)); err != nil {
		return err
	}
	m.Store.Step("copy data")
	if ctx.Err() != nil {
		return status.Errorf(codes.Aborted, "volume %s is not wanted here any more", to.ID)
	}
	unchanged, err := m.Backing.Copy(ctx, from.volume, to)
	if err != nil {
		return err
	}
	m.Store.Step("copied data")
	if err = unchanged(); err != nil {
		err = status.Errorf(codes.FailedPrecondition, "volume %s is still being written on node %s: %v", to.ID, from.store.Node, err)
	}
	if ctx.Err() != nil {
		return status.Errorf(codes.Aborted, "volume %s is not wanted here any more", to.ID)
	}
	if err == nil {
		err = m.Backing.Make(to, false)
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(to.Path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return unix.Syncfs(int(dir.Fd()))
}

// join does something for a volume in the background, because it takes longer than a call, or joins what is being done, and
// returns its error. If the call ends before, it goes on.
func (m *Manager) join(ctx context.Context, id string, do func(context.Context) error) error {
	result := m.copies.DoChan(id, func() (any, error) {
		background, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		m.cancels.Store(id, cancel)
		defer m.cancels.Delete(id)
		return nil, do(background)
	})
	select {
	case r := <-result:
		return r.Err
	case <-ctx.Done():
		return status.Errorf(codes.Aborted, "volume %s is still being copied", id)
	}
}

// end ends what is being done for a volume. If that takes longer than the call, the error
// is Aborted.
func (m *Manager) end(ctx context.Context, id string) error {
	if cancel, ok := m.cancels.Load(id); ok {
		cancel.(context.CancelFunc)()
	}
	select {
	case <-m.copies.DoChan(id, func() (any, error) { return nil, nil }): // joins it
		return nil
	case <-ctx.Done():
		return status.Errorf(codes.Aborted, "volume %s is still being copied", id)
	}
}
