// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"capacityv2.internal/test-e2e/driver/store"
)

// format makes ext4 in the file of a new volume, unless it is a raw block volume. That is done when the volume is made: never
// later, because then it may have data.
func (n *Node) format(path string, c store.Copy) error {
	if c.Block {
		return nil
	}
	n.Fault.Step("mke2fs")
	if _, err := n.run("mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", path); err != nil {
		return err
	}
	return store.Allocate(path, c.Bytes) // what was zeroed has given back what was allocated
}

// attach attaches a loop device to a file, or finds the one that is attached.
func (n *Node) attach(path string) (device string, err error) {
	n.Fault.Step("losetup")
	return n.run("losetup", "--find", "--show", "--nooverlap", path)
}

// detachLater detaches devices from the data of a copy, once nothing has them open.
func (n *Node) detachLater(c store.Copy) error {
	devices, err := attached(c)
	for _, device := range devices {
		n.Fault.Step("losetup --detach")
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
	out, err := n.Exec.Command(program, arguments...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", program, strings.Join(arguments, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
