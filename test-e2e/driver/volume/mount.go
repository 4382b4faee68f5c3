// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/mount-utils"

	"capacityv2.internal/test-e2e/driver/store"
)

// format makes ext4 in the file of a new volume, unless it is a raw block volume. That is done when the volume is made: never
// later, because then it may have data.
func (n *Node) format(path string, c store.Copy) error {
	if c.Block {
		return nil
	}
	if _, err := n.run("mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", path); err != nil {
		return err
	}
	return store.Allocate(path, c.Bytes) // what was zeroed has given back what was allocated
}

// attach attaches a loop device to a file, or finds the one that is attached.
func (n *Node) attach(path string) (device string, err error) {
	return n.run("losetup", "--find", "--show", "--nooverlap", path)
}

// detachLater detaches devices from the data of a copy, once nothing has them open.
func (n *Node) detachLater(c store.Copy) error {
	devices, err := attached(c)
	for _, device := range devices {
		_, detachErr := n.run("losetup", "--detach", device)
		err = errors.Join(err, detachErr)
	}
	return err
}

// attached returns the loop devices of a copy. The kernel tells, also of those that another mount namespace has, and after
// losetup --detach.
func attached(c store.Copy) (devices []string, err error) {
	all, err := os.ReadDir("/sys/block") // without it, nobody could tell
	if err != nil {
		return nil, err
	}
	for _, device := range all {
		name, err := backingFile(filepath.Join("/sys/block", device.Name()))
		if err != nil {
			return nil, err
		}
		if name == c.Key() {
			devices = append(devices, "/dev/"+device.Name())
		}
	}
	return devices, nil
}

// backingFile returns the name of the file that is attached to a device, if one is. Names are keys, which are unique; the rest
// of the path is not the same after a restart of the driver.
func backingFile(device string) (name string, err error) {
	path, err := os.ReadFile(filepath.Join(device, "loop/backing_file"))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV) {
		return "", nil // not attached, or not any more
	}
	name, _, _ = strings.Cut(filepath.Base(strings.TrimSpace(string(path))), " (deleted)")
	return name, err
}

func (n *Node) run(program string, arguments ...string) (string, error) {
	n.Store.Fault.Step(program + " " + arguments[0])
	out, err := n.Exec.Command(program, arguments...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", program, strings.Join(arguments, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

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
	n.Store.Fault.Step("mount")
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
	n.Store.Fault.Step("unmount")
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
