package volume

import (
	"context"
	"path/filepath"
	"slices"

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
	options := []string{"bind"}
	if err == nil && readonly {
		options = append(options, "ro")
		err = m.unmountWritable(target)
	}
	if err == nil {
		err = bind(m.Mounter, v, target, func() (string, string, []string, error) { return source, "", options, nil })
	}
	if err != nil {
		return status.Errorf(codes.Internal, "mount volume %s: %v", id, err)
	}
	return nil
}

// unmountWritable unmounts what is mounted at a path and can be written: a bind mount is made
// read-only in a second step, before which a driver was killed.
func (m *Manager) unmountWritable(path string) error {
	mounted, err := isMounted(m.Mounter, path)
	if err != nil || !mounted {
		return err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return err
	}
	mounts, err := m.Mounter.List()
	for _, at := range mounts {
		if at.Path == path && !slices.Contains(at.Opts, "ro") {
			return m.Mounter.Unmount(path)
		}
	}
	return err
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
