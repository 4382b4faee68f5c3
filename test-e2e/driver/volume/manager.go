package volume

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/klog/v2"
	"k8s.io/mount-utils"
	"k8s.io/utils/keymutex"

	"capacityv2.internal/test-e2e/driver/pool"
)

// Placement is what a node asks the PersistentVolumes for, and what it says about them.
type Placement interface {
	// IsOff tells whether a node cannot write any more to what it has staged, because it is known to be off.
	IsOff(ctx context.Context, node string) bool
	// Ask returns no error if a node may do what it asks for, Aborted if the volume is or
	// was sent elsewhere, and Unavailable if that cannot be told. If holders are given, which by the books have the data,
	// the PersistentVolume has to know one of them: else the books are older than it.
	Ask(ctx context.Context, question Question, v pool.Volume, node string, holders ...string) error
	// Self returns the UID of the Node object of a node.
	Self(ctx context.Context, node string) (string, error)
}

// Question is what a node asks about a volume.
type Question string

const (
	// Begin: may the node begin a copy, because it is asked for the volume?
	Begin Question = "begin"
	// Place: the node has a complete copy. May it serve it? The node affinity then names it.
	Place Question = "place"
	// Show: the node has a complete copy. If the volume has no node affinity, it is one of
	// the home nodes, unless the one for which it is fenced is one whose Node object exists.
	Show Question = "show"
	// Drop: may the node remove its copy? FailedPrecondition if the node affinity names it, or it is a home node.
	Drop Question = "drop"
	// Named: does the node affinity name the node, and no other one?
	Named Question = "named"
	// Make: is there no PersistentVolume yet, so that the volume may be made?
	Make Question = "make"
)

// Manager manages the volumes of one node. All of its errors have a gRPC status.
type Manager struct {
	// Store has the books of the node.
	Store *pool.Store
	// Backing is what volumes are made of.
	Backing Backing
	// Mounter mounts them.
	Mounter mount.Interface
	// Placement is what the API server says.
	Placement Placement

	// calls has one change of a volume at a time.
	calls keymutex.KeyMutex
	// copies are those that go on, and cancels what ends them, by volume ID.
	copies  singleflight.Group
	cancels sync.Map
	// shown has the UIDs of the Node object with which copies were shown, by volume ID.
	shown map[string]string
	// showAt is when to show all of them again.
	showAt time.Time
}

// New returns a manager, after it has finished or undone what a driver has left that
// was killed.
func New(ctx context.Context, m *Manager) (*Manager, error) {
	m.calls = keymutex.NewHashed(1024)
	return m, m.recover(ctx)
}

// recover fails if the books cannot be read. What else fails is tried again by a later call: one
// broken disk does not keep the other pools of the node away.
func (m *Manager) recover(ctx context.Context) error {
	if err := m.Store.RemoveUnknown(); err != nil {
		klog.FromContext(ctx).Error(err, "Disks are not as the books say")
	}
	m.sweepAll(ctx, "", func(v pool.Volume) bool {
		return v.State == pool.Creating || v.State == pool.Rebuilding || v.StagedAt != ""
	})
	_, err := m.Store.Volumes()
	return err
}

// releaseUnmounted says that a volume is not staged any more if nothing is mounted, as after the node was
// restarted. The kubelet may never ask for that.
func (m *Manager) releaseUnmounted(ctx context.Context, v pool.Volume) error {
	mounted, err := isMounted(m.Mounter, staged(v, v.StagedAt))
	if err != nil || mounted {
		return err
	}
	klog.FromContext(ctx).Info("Releasing a volume that is not mounted any more", "volume", v.ID, "path", v.StagedAt)
	return m.release(ctx, v.ID, v.StagedAt)
}

// replica is what a node has of a volume.
type replica struct {
	store  *pool.Store
	volume pool.Volume
}

// own returns what this node knows of a volume, or nil.
func (m *Manager) own(id string) (*pool.Volume, error) {
	v, err := m.Store.Get(id)
	if errors.Is(err, pool.ErrNotFound) {
		return nil, nil
	}
	return &v, internal(err)
}

// find returns what this and the other nodes know of a volume. own is nil if this node
// does not know it. If one of them does not answer, the error is Unavailable: it may have the data.
func (m *Manager) find(id string) (own *pool.Volume, others []replica, err error) {
	if own, err = m.own(id); err != nil {
		return nil, nil, err
	}
	stores, err := m.Store.Others()
	if err != nil {
		return nil, nil, internal(err)
	}
	for _, s := range stores {
		v, err := s.Get(id)
		switch {
		case err == nil:
			others = append(others, replica{s, v})
		case !errors.Is(err, pool.ErrNotFound):
			return nil, nil, internal(err)
		}
	}
	return own, others, nil
}

// Get returns a volume that this node has.
func (m *Manager) Get(id string) (pool.Volume, error) {
	v, err := m.Store.Get(id)
	if errors.Is(err, pool.ErrNotFound) || err == nil && v.State != pool.Ready {
		return v, status.Errorf(codes.NotFound, "volume %s is not on node %s", id, m.Store.Node)
	}
	return v, internal(err)
}

// internal gives an error a status, if it has none.
func internal(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, pool.ErrAway) { // not final: an earlier call may have made or mounted it
		return status.Error(codes.Unavailable, err.Error())
	}
	if errors.Is(err, pool.ErrNoRoom) || errors.Is(err, unix.ENOSPC) {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Internal, err.Error())
}
