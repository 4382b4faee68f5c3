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

// copyHere copies a volume to this node, or brings the copy that there is up to date,
// unless the data is here. It only becomes the volume's when it is served.
func (m *Manager) copyHere(ctx context.Context, id string) error {
	source, own, err := m.prepare(ctx, id)
	if err == nil && own == nil {
		return nil
	}
	if err == nil {
		err = m.copyFrom(ctx, source, *own)
	}
	rebuilds.WithLabelValues(result(err)).Inc()
	if err != nil && own != nil {
		// The pod may go elsewhere, so the room is given back.
		err = errors.Join(err, m.drop(context.WithoutCancel(ctx), *own))
	}
	return err
}

func (m *Manager) copyFrom(ctx context.Context, source replica, own pool.Volume) error {
	if err := m.copyData(ctx, source, replica{m.Store, own}); err != nil {
		return err
	}
	_, err := m.Store.Update(own.ID, func(v *pool.Volume) error {
		switch {
		case !v.TakesRoom():
			return status.Errorf(codes.Aborted, "volume %s was deleted while it was copied", v.ID)
		case isHalf(*v):
			v.State = pool.Rebuilt
		default: // The volume had this copy before.
			v.State = pool.Ready
		}
		v.Generation = source.volume.Generation
		return nil
	})
	if err == nil {
		klog.FromContext(ctx).Info("Copied volume", "volume", own.ID, "from", source.store.Node, "pool", own.Pool, "bytes", own.CapacityBytes)
	}
	return err
}

// prepare takes the room for a copy of a volume, and fences the other ones. own is nil if
// there is nothing to copy.
func (m *Manager) prepare(ctx context.Context, id string) (source replica, own *pool.Volume, err error) {
	m.calls.LockKey(id)
	defer func() { _ = m.calls.UnlockKey(id) }()

	own, others, err := m.find(id)
	if err != nil || own != nil && own.HasData() && own.StagedAt != "" {
		return source, nil, err
	}
	if source, err = m.newest(id, own, others); err != nil || m.isHere(own, source) {
		return source, nil, err
	}
	wanted := source.volume
	wanted.State, wanted.Generation, wanted.FencedFor, wanted.StagedAt = pool.Rebuilding, 0, "", ""
	wanted.Copies = []string{m.Store.Node}
	reserved, err := m.Store.Reserve(wanted)
	if err == nil {
		reserved, err = m.Store.Resize(id, wanted.CapacityBytes) // an old copy may be smaller
	}
	if err != nil {
		return source, nil, internal(err)
	}
	// The controller half writes this down before the first byte is copied.
	err = m.ask(ctx, Begin, id)
	if err == nil && reserved.FencedFor != "" { // of an earlier attempt; the data is elsewhere now
		err = m.unfence(id)
	}
	if err == nil {
		err = m.fence(ctx, slices.DeleteFunc(others, func(r replica) bool { return !r.volume.TakesRoom() }))
	}
	return source, &reserved, err
}

func result(err error) string {
	switch status.Code(err) {
	case codes.OK:
		return "done"
	case codes.ResourceExhausted, codes.FailedPrecondition, codes.Aborted:
		return "refused"
	default:
		return "failed"
	}
}
