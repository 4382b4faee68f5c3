// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/mount-utils"

	"capacityv2.internal/test-e2e/driver/store"
)

// target is what is mounted when a volume is staged at a path: a folder, or a device.
func target(path string) string { return filepath.Join(path, "volume") }

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
	if err := n.mountAt(c, loop, target(path), fsType, options); err != nil || c.Block {
		return err
	}
	return n.detachLater(c) // when it is unmounted, also if the node is killed
}

// mountAt mounts something at a path, unless the copy is there, and in the place of what else is.
func (n *Node) mountAt(c store.Copy, source, path, fsType string, options []string) (err error) {
	if isAt(c, path) {
		return nil
	}
	if err := n.unmount(path); err != nil {
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
	n.Fault.Step("mount")
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

// isAt tells whether a copy is mounted at a path: its device has the data of the copy.
func isAt(c store.Copy, path string) bool {
	var stat unix.Stat_t
	if unix.Stat(path, &stat) != nil {
		return false
	}
	device := stat.Dev
	if stat.Mode&unix.S_IFMT == unix.S_IFBLK {
		device = stat.Rdev
	}
	file, err := backingFile(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(device), unix.Minor(device)))
	return err == nil && file == c.Key()
}

// unmount unmounts a path, and removes it.
func (n *Node) unmount(path string) error {
	n.Fault.Step("unmount")
	return mount.CleanupMountPoint(path, n.Mounter, true)
}

// Publish binds a volume that is staged, as a device or with a file system, to the path of a pod.
func (n *Node) Publish(ctx context.Context, handle, staging, path string, block, readonly bool) error {
	k, unlock, err := n.begin(ctx, handle, false)
	if err != nil {
		return err
	}
	defer unlock()
	c, _ := k.current()
	switch {
	case ctx.Err() != nil: // Nothing is bound after the call has ended.
		return withCode(ctx.Err())
	case !n.isStaged(k, staging):
		return status.Errorf(codes.FailedPrecondition, "copy %s of volume %s is not staged at %q", k.Copy, handle, staging)
	case c.Block != block:
		return status.Errorf(codes.InvalidArgument, "volume %s was made with volume mode Block: %t", handle, c.Block)
	}
	err = n.mountAt(c, target(staging), path, "", []string{"bind"})
	if err == nil && readonly { // also what was bound by a driver that was killed then
		err = unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	}
	return withCode(err)
}

// Unpublish unmounts the path of a pod, and removes it.
func (n *Node) Unpublish(handle, path string) error {
	unlock, err := n.lock(handle)
	if err != nil {
		return err
	}
	defer unlock()
	return withCode(n.unmount(path))
}
