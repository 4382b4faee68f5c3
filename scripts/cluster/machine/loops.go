// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// inode is a file, whatever its path: that of a loop device is what another mount namespace once saw.
type inode struct{ device, number uint64 }

// DetachLoops detaches the loop devices of the files below dir, and those that a kubelet has
// on top of them: they outlive what has made them, and belong to no namespace.
func DetachLoops(dir string) error {
	ours := map[inode]bool{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			err = addFile(ours, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil || len(ours) == 0 {
		return err
	}
	var devices []string
	for before := -1; before < len(devices); { // until there is nothing on top of them
		before = len(devices)
		attached, err := filepath.Glob("/sys/block/loop*/loop")
		if err != nil {
			return err
		}
		for _, path := range attached {
			device := filepath.Join("/dev", filepath.Base(filepath.Dir(path)))
			file, err := backing(device)
			if err != nil {
				return err
			}
			if !ours[file] || slices.Contains(devices, device) {
				continue
			}
			devices = append(devices, device)
			if err := addFile(ours, device); err != nil {
				return err
			}
		}
	}
	var errs []error
	for _, device := range slices.Backward(devices) {
		err := onLoop(device, func(fd int) error { return unix.IoctlSetInt(fd, unix.LOOP_CLR_FD, 0) })
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// addFile adds a file as the kernel says what a loop device is attached to.
func addFile(files map[inode]bool, path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	stat := info.Sys().(*syscall.Stat_t)
	files[inode{stat.Dev, stat.Ino}] = true
	return nil
}

// backing returns the file of a loop device, or none if that is not for us to see.
func backing(device string) (file inode, err error) {
	err = onLoop(device, func(fd int) error {
		status, err := unix.IoctlLoopGetStatus64(fd)
		if err == nil {
			file = inode{status.Device, status.Inode}
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		err = nil
	}
	return file, err
}

// onLoop does something with a loop device, unless that has been detached meanwhile.
func onLoop(device string, do func(fd int) error) error {
	file, err := os.Open(device)
	if err == nil {
		err = errors.Join(do(int(file.Fd())), file.Close())
	}
	if errors.Is(err, unix.ENXIO) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("loop device %s: %w", device, err)
	}
	return nil
}
