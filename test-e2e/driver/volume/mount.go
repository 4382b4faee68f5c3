// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/mount-utils"

	"capacityv2.internal/test-e2e/driver/store"
)

// device is the file in a staging path on which a block volume is mounted.
const device = "device"

// target returns what is mounted when a volume is staged at a path.
func target(c store.Copy, path string) string {
	if c.Block {
		return filepath.Join(path, device)
	}
	return path
}

// mount makes the data of a copy usable at a staging path.
func (n *Node) mount(c store.Copy, data, path string, options []string) error {
	loop, err := n.attach(data)
	if err != nil {
		return err
	}
	fsType := "ext4"
	if c.Block {
		fsType, options = "", []string{"bind"}
	}
	if err := n.mountAt(c, loop, target(c, path), fsType, options); err != nil || c.Block {
		return err
	}
	return n.detachLater(c) // when it is unmounted, also if the node is killed
}

// mountAt mounts something at a path, unless that is done.
func (n *Node) mountAt(c store.Copy, source, path, fsType string, options []string) error {
	mounted, err := n.isMounted(path)
	if err != nil || mounted {
		return err
	}
	if c.Block {
		if err = os.MkdirAll(filepath.Dir(path), 0o750); err == nil {
			err = os.WriteFile(path, nil, 0o640)
		}
	} else {
		err = os.MkdirAll(path, 0o750)
	}
	if err != nil {
		return err
	}
	n.step("mount")
	if err := n.Mounter.Mount(source, path, fsType, options); err != nil {
		return err
	}
	if fsType != "ext4" {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	// A pod may run as any user. The other bits stay: by the one for the group, the kubelet sees that it has set the owner already.
	return os.Chmod(path, info.Mode()|0o777)
}

// unmount unmounts what is mounted at a staging path, or in it.
func (n *Node) unmount(path string) error {
	for _, target := range []string{filepath.Join(path, device), path} {
		mounted, err := n.isMounted(target)
		if err == nil && mounted {
			n.step("unmount")
			err = n.Mounter.Unmount(target)
		}
		if err != nil {
			return err
		}
	}
	if err := os.Remove(filepath.Join(path, device)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (n *Node) isMounted(path string) (bool, error) {
	mounted, err := n.Mounter.IsMountPoint(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return mounted, err
}

// Publish binds a volume that is staged to the path of a pod. Nothing is bound after the call has ended, or while the
// volume is unstaged.
func (n *Node) Publish(ctx context.Context, handle, staging, path string, readonly bool) error {
	_, done, err := n.begin(handle)
	if err != nil {
		return err
	}
	defer done()
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	c, err := n.Get(handle)
	if status.Code(err) == codes.NotFound { // Not final: something may be mounted.
		err = status.Error(codes.Unavailable, err.Error())
	}
	if err != nil {
		return err
	}
	source := target(c, staging)
	isStaged, err := n.isMounted(source)
	if err == nil && (!isStaged || staging == "") {
		return status.Errorf(codes.FailedPrecondition, "volume %s is not staged at %q", handle, staging)
	}
	if err == nil {
		err = n.mountAt(c, source, path, "", []string{"bind"})
	}
	if err == nil && readonly { // also what was bound by a driver that was killed then
		err = unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	}
	if err != nil {
		return status.Errorf(codes.Internal, "mount volume %s: %v", handle, err)
	}
	return nil
}

// Unpublish unmounts the path of a pod, and removes it.
func (n *Node) Unpublish(handle, path string) error {
	n.step("unpublish")
	if err := mount.CleanupMountPoint(path, n.Mounter, true); err != nil {
		return status.Errorf(codes.Internal, "unmount volume %s: %v", handle, err)
	}
	return nil
}
