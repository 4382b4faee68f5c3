package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/klog/v2"

	"capacityv2.internal/test-e2e/driver/pool"
)

// isHalf tells whether a copy is not complete, or not the volume's yet. Its room counts as
// used.
func isHalf(v pool.Volume) bool { return v.State == pool.Rebuilding || v.State == pool.Rebuilt }

// drop removes half a volume, or the half copy of one that this node is not asked for any more, if it is one.
func (m *Manager) drop(ctx context.Context, v pool.Volume) error {
	if v.State == pool.Ready {
		return nil
	}
	err := m.ask(ctx, Drop, v)
	if _, dataErr := os.Stat(v.Path); v.State != pool.Rebuilt && errors.Is(dataErr, fs.ErrNotExist) {
		return m.Store.Discard(v)
	}
	return m.removeIf(ctx, err, v)
}

// removeIf removes what this node has of a volume, by the answer to Drop. It stays if the PersistentVolume names this node,
// or lists it: then it is complete, and if the books say otherwise, they are older than it.
func (m *Manager) removeIf(ctx context.Context, answer error, v pool.Volume) error {
	switch {
	case answer == nil:
		return m.Store.Discard(v)
	case status.Code(answer) == codes.FailedPrecondition:
		klog.FromContext(ctx).V(4).Info("A copy stays that the PersistentVolume knows of", "volume", v.ID, "state", v.State, "reason", answer)
		return nil
	}
	return answer
}

// showInterval is how often all copies are shown again.
const showInterval = time.Minute

// Sweep removes half volumes and copies for which the call that would have finished or removed them was lost, and
// releases volumes that are not mounted any more. It shows which copies this node has: it may have come back,
// which a new Node object tells. A volume that is as it should be costs no question.
func (m *Manager) Sweep(ctx context.Context) {
	if now := time.Now(); now.After(m.showAt) {
		m.shown, m.showAt = map[string]string{}, now.Add(showInterval)
	}
	uid, err := m.Placement.Self(ctx, m.Store.Node)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Getting the Node object failed, will try again")
	}
	m.sweepAll(ctx, uid, func(v pool.Volume) bool {
		return v.State != pool.Ready || v.FencedFor != "" || v.StagedAt != "" || uid != "" && m.shown[v.ID] != uid
	})
}

// GiveUp removes copies that another node has taken over, or that were deleted there.
func (m *Manager) GiveUp(ctx context.Context) {
	m.sweepAll(ctx, "", func(v pool.Volume) bool { return v.FencedFor != "" && v.StagedAt == "" })
}

func (m *Manager) sweepAll(ctx context.Context, uid string, wanted func(pool.Volume) bool) {
	volumes, err := m.Store.Volumes()
	for _, v := range volumes {
		if !wanted(v) {
			continue
		}
		if sweepErr := m.sweep(ctx, v.ID, uid); status.Code(sweepErr) != codes.Unavailable {
			err = errors.Join(err, sweepErr)
		}
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Looking at the copies of this node failed, will try again")
	}
}

// sweep looks at a volume, and shows its copy if the UID of the Node object is known.
func (m *Manager) sweep(ctx context.Context, id, uid string) error {
	m.calls.LockKey(id)
	defer func() { _ = m.calls.UnlockKey(id) }()

	if _, isCopying := m.cancels.Load(id); isCopying {
		return nil
	}
	own, err := m.own(id)
	switch {
	case err != nil || own == nil:
		return err
	case own.State == pool.Creating || own.State == pool.Rebuilding:
		return m.drop(ctx, *own)
	case own.StagedAt != "":
		return m.releaseUnmounted(ctx, *own)
	case own.FencedFor == pool.Deletion:
		return m.removeIf(ctx, m.ask(ctx, Drop, *own), *own)
	}
	own, others, err := m.find(id)
	if err != nil || own == nil {
		return err
	}
	newest, holders, err := m.newest(id, own, others)
	switch isHere := slices.Contains(holders, m.Store.Node); {
	case err != nil:
		return err
	case own.State == pool.Rebuilt && !isHere:
		return m.drop(ctx, *own)
	case own.State == pool.Rebuilt:
		// It is the volume if the claim is still meant to be here. Then this node owns it, also if
		// nobody uses it before it is deleted.
		if _, err = m.open(ctx, id, "", own, others); status.Code(err) == codes.Aborted {
			return m.drop(ctx, *own)
		}
	case !isHere && newest.volume.Served:
		return m.removeIf(ctx, m.ask(ctx, Drop, *own), *own)
	case isHere && uid != "":
		if err = m.Backing.Check(*own); err == nil {
			err = m.ask(ctx, Show, *own, holders...)
		}
		if err == nil && own.FencedFor == "" { // The node for which it is fenced may go.
			m.shown[id] = uid
		}
	}
	return err
}
