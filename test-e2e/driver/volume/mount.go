// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"fmt"
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

// mountAt mounts something at a path, unless the copy is there. It hides what else is.
func (n *Node) mountAt(c store.Copy, source, path, fsType string, options []string) (err error) {
	if isAt(c, path) {
		return nil
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

// unmount unmounts all that is mounted at a staging path, and then in it: a pod may have put something of that name into its
// volume.
func (n *Node) unmount(path string) error {
	for _, target := range []string{path, filepath.Join(path, device)} {
		for {
			mounted, err := n.Mounter.IsMountPoint(target)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if !mounted {
				break
			}
			n.Fault.Step("unmount")
			if err := n.Mounter.Unmount(target); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(filepath.Join(path, device)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Publish binds a volume that is staged, as a device or with a file system, to the path of a pod.
func (n *Node) Publish(ctx context.Context, handle, staging, path string, block, readonly bool) error {
	s, done, err := n.beginHere(handle)
	if err != nil {
		return err
	}
	defer done()
	k, err := n.look(ctx, s, handle)
	if err == nil {
		err = ctx.Err() // nothing is bound after the call has ended
	}
	if err != nil {
		return withCode(err)
	}
	c, _ := k.current()
	switch {
	case !n.isStaged(k, staging):
		return status.Errorf(codes.FailedPrecondition, "copy %s of volume %s is not staged at %q", k.Copy, handle, staging)
	case c.Block != block:
		return status.Errorf(codes.InvalidArgument, "volume %s was made with volume mode Block: %t", handle, c.Block)
	}
	err = n.mountAt(c, target(c, staging), path, "", []string{"bind"})
	if err == nil && readonly { // also what was bound by a driver that was killed then
		err = unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	}
	return withCode(err)
}

// Unpublish unmounts the path of a pod, and removes it.
func (n *Node) Unpublish(handle, path string) error {
	done, err := n.begin(handle)
	if err != nil {
		return err
	}
	defer done()
	n.Fault.Step("unpublish")
	if err := mount.CleanupMountPoint(path, n.Mounter, true); err != nil {
		return status.Errorf(codes.Internal, "unmount volume %s: %v", handle, err)
	}
	return nil
}
