package volume

import (
	"context"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/mount-utils"
)

// Publish binds a volume that is staged to the path of a pod. Nothing is bound after the call has
// ended, or while the volume is unstaged.
func (m *Manager) Publish(ctx context.Context, id, staging, target string, readonly bool) error {
	m.calls.LockKey(id)
	defer func() { _ = m.calls.UnlockKey(id) }()

	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	v, err := m.Get(id)
	if err != nil {
		return err
	}
	source := staged(v, staging)
	isStaged := v.StagedAt != "" && v.StagedAt == staging && v.FencedFor == ""
	if isStaged {
		isStaged, err = isMounted(m.Mounter, source)
	}
	if err == nil && !isStaged {
		return status.Errorf(codes.FailedPrecondition, "volume %s is not staged at %q", id, staging)
	}
	if err == nil {
		err = bind(m.Mounter, v, target, func() (string, string, []string, error) { return source, "", []string{"bind"}, nil })
	}
	if err == nil && readonly { // also what was bound by a driver that was killed then
		err = unix.MountSetattr(unix.AT_FDCWD, target, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	}
	if err != nil {
		return status.Errorf(codes.Internal, "mount volume %s: %v", id, err)
	}
	return nil
}

// Unpublish unmounts the path of a pod, and removes it.
func (m *Manager) Unpublish(id, target string) error {
	m.calls.LockKey(id)
	defer func() { _ = m.calls.UnlockKey(id) }()

	if err := mount.CleanupMountPoint(target, m.Mounter, true); err != nil {
		return status.Errorf(codes.Internal, "unmount volume %s: %v", id, err)
	}
	return nil
}
