package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/klog/v2"

	"capacityv2.internal/test-e2e/driver/pool"
)

// isHalf tells whether a copy is not complete, or not the volume's yet. Its room counts as
// used.
func isHalf(v pool.Volume) bool { return v.State == pool.Rebuilding || v.State == pool.Rebuilt }

// drop removes half a volume, or the half copy of one that this node is not asked for any more, if it is one. It stays if the
// PersistentVolume names this node already, or lists it: then it is complete, and if the books say otherwise, they are older
// than it. begun says that this call has begun it.
func (m *Manager) drop(ctx context.Context, v pool.Volume, begun bool) error {
	if v.State == pool.Ready {
		return nil
	}
	err := m.ask(ctx, Drop, v)
	_, dataErr := os.Stat(v.Path)
	switch {
	case err == nil, v.State != pool.Rebuilt && (begun || v.ID != volumeID(v) || errors.Is(dataErr, fs.ErrNotExist)):
		return errors.Join(m.Store.Discard(v), m.Store.MarkCopy(v.ID, false))
	case status.Code(err) == codes.FailedPrecondition:
		klog.FromContext(ctx).Info("A copy stays that the PersistentVolume knows of", "volume", v.ID, "state", v.State, "reason", err)
		return nil
	}
	return err
}

// Sweep removes half volumes and copies, and old ones of other nodes, for which the call that would have
// finished or removed them was lost, and releases volumes that are not mounted any more. It shows which
// copies this node has: it may have come back.
func (m *Manager) Sweep(ctx context.Context) {
	volumes, err := m.Store.Volumes()
	for _, v := range volumes {
		err = errors.Join(err, m.sweep(ctx, v.ID, volumeID(v)))
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Looking at the copies of this node failed, will try again")
	}
}

// sweep looks at the copy with an ID, of a volume.
func (m *Manager) sweep(ctx context.Context, id, volume string) error {
	m.calls.LockKey(volume)
	defer func() { _ = m.calls.UnlockKey(volume) }()

	if m.isCopying(volume) {
		return nil
	}
	own, others, err := m.find(id)
	if err != nil || own == nil {
		return err
	}
	newest, newestErr := m.newest(id, own, others)
	isHere := newestErr == nil && m.isHere(own, newest)
	switch {
	case own.State == pool.Creating || own.State == pool.Rebuilding:
		err = m.drop(ctx, *own, false)
	case own.State == pool.Rebuilt && newestErr == nil && !isHere:
		return m.Store.Discard(*own)
	case own.State == pool.Rebuilt && isHere:
		// It is the volume if the claim is still meant to be here. Then this node owns it, also if
		// nobody uses it before it is deleted.
		if _, err = m.open(ctx, id, "", own, others); status.Code(err) == codes.Aborted {
			return m.drop(ctx, *own, false)
		}
	case own.State == pool.Ready && isHere && own.StagedAt != "":
		m.giveUp(ctx, id, others)
		err = m.releaseUnmounted(ctx, *own)
	case own.State == pool.Ready && isHere:
		if err = m.Backing.Check(*own); err == nil {
			err = m.ask(ctx, Show, *own)
		}
	}
	if status.Code(err) == codes.Unavailable {
		return nil
	}
	return err
}
