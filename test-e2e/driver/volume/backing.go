package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	continuity "github.com/containerd/continuity/fs"
	"golang.org/x/sys/unix"

	"k8s.io/utils/exec"

	"capacityv2.internal/test-e2e/driver/pool"
)

// Backing is what volumes are made of. The data of a volume is in a folder.
type Backing interface {
	// HasBlock tells whether volumes can be devices.
	HasBlock() bool
	// Make makes the data of a new volume, or of a copy whose holes are not allocated. It can be
	// repeated.
	Make(v pool.Volume, format bool) error
	// Copy makes the data of a volume from that of another node, which may have put anything there. unchanged
	// returns an error if that was written since.
	Copy(ctx context.Context, from, to pool.Volume) (unchanged func() error, err error)
	// Check returns an error if the data of a volume is not there, is not all of it, or its beginning cannot
	// be read.
	Check(v pool.Volume) error
	// Attach returns what is to be mounted, as what, and with which options. It can be
	// repeated.
	Attach(v pool.Volume) (source, fsType string, options []string, err error)
	// Detach undoes Attach, or has it undone when nothing uses the volume any more. Until then,
	// inUse is true: it may be written.
	Detach(v pool.Volume) (inUse bool, err error)
}

// Folders are volumes that are folders. Nothing keeps a pod from writing more than the
// size; the books are what bounds a pool. They need nothing but bind mounts.
type Folders struct{}

// HasBlock returns false: a folder is no device.
func (Folders) HasBlock() bool { return false }

// Make makes the folder. A copy keeps the permissions that a pod has given it.
func (Folders) Make(v pool.Volume, format bool) error {
	if !format {
		return nil
	}
	if err := makeFolder(v); err != nil {
		return err
	}
	return os.Chmod(v.Path, 0o777) // whatever the umask: a pod may run as any user
}

// makeFolder does not make the folder of the pool: it is missing if the disk is not mounted.
func makeFolder(v pool.Volume) error {
	if err := os.Mkdir(v.Path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Copy copies the folder.
func (Folders) Copy(ctx context.Context, from, to pool.Volume) (unchanged func() error, err error) {
	return func() error {
		// Names, kinds, owners, permissions, sizes and times: what is written changes them.
		return continuity.Changes(ctx, from.Path, to.Path, func(kind continuity.ChangeKind, path string, _ fs.FileInfo, err error) error {
			if err == nil && kind != continuity.ChangeKindUnmodified {
				err = fmt.Errorf("%s differs", path)
			}
			return err
		})
	}, continuity.CopyDir(to.Path, from.Path)
}

// Check reads the folder.
func (Folders) Check(v pool.Volume) error {
	_, err := os.ReadDir(v.Path)
	return err
}

// Attach returns the folder.
func (Folders) Attach(v pool.Volume) (source, fsType string, options []string, err error) {
	return v.Path, "", []string{"bind"}, nil
}

// Detach does nothing.
func (Folders) Detach(pool.Volume) (inUse bool, err error) { return false, nil }

// Images are volumes that are files, allocated when they are made, on loop devices. One
// with a file system has ext4, and is formatted when it is made: never later, because then
// it may have data.
type Images struct {
	// Exec runs mke2fs, and losetup of util-linux.
	Exec exec.Interface
}

func image(v pool.Volume) string { return filepath.Join(v.Path, "image") }

// HasBlock returns true.
func (Images) HasBlock() bool { return true }

// Make allocates the file, in whole sectors, and formats it. What is zeroed or discarded gives
// back what was allocated: so that is not left to the kernel, and the file is allocated again.
func (b Images) Make(v pool.Volume, format bool) error {
	err := makeFolder(v)
	if err == nil {
		err = allocate(v)
	}
	if err != nil || v.Block || !format {
		return err
	}
	_, err = b.run("mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", image(v))
	return errors.Join(err, allocate(v))
}

func allocate(v pool.Volume) error {
	file, err := pool.OpenFile(image(v), os.O_CREATE|os.O_RDWR)
	if err != nil {
		return err
	}
	err = unix.Fallocate(int(file.Fd()), 0, 0, sectors(v))
	return errors.Join(err, file.Sync(), file.Close())
}

// sectors returns the size of a volume in whole sectors.
func sectors(v pool.Volume) int64 {
	const sector = 512
	return (v.CapacityBytes + sector - 1) / sector * sector
}

// Copy copies the file that is open, whatever its name leads to meanwhile.
func (Images) Copy(_ context.Context, from, to pool.Volume) (unchanged func() error, err error) {
	file, before, err := openWhole(from)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := makeFolder(to); err != nil {
		return nil, err
	}
	return func() error {
		file, now, err := openWhole(from)
		if err != nil {
			return err
		}
		if !os.SameFile(before, now) || !before.ModTime().Equal(now.ModTime()) {
			err = fmt.Errorf("%s differs", image(from))
		}
		return errors.Join(err, file.Close())
	}, continuity.CopyFile(image(to), fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
}

// openWhole opens the file if it has the size of the volume.
func openWhole(v pool.Volume) (*os.File, fs.FileInfo, error) {
	file, err := pool.OpenFile(image(v), os.O_RDONLY)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Size() != sectors(v) {
		err = fmt.Errorf("%s has %d bytes; expected %d", image(v), info.Size(), sectors(v))
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

// Check looks at the file, and reads its first block.
func (Images) Check(v pool.Volume) error {
	file, _, err := openWhole(v)
	if err != nil {
		return err
	}
	_, err = file.ReadAt(make([]byte, 1), 0)
	return errors.Join(err, file.Close())
}

// Attach attaches a loop device to the file, or finds the one that is attached.
func (b Images) Attach(v pool.Volume) (source, fsType string, options []string, err error) {
	if err := b.Check(v); err != nil {
		return "", "", nil, err
	}
	device, err := b.run("losetup", "--find", "--show", "--nooverlap", image(v))
	if v.Block {
		return device, "", []string{"bind"}, err
	}
	return device, "ext4", nil, err
}

// Detach detaches what is attached to the file. A device that is mounted is detached when it
// is unmounted, whoever does that.
func (b Images) Detach(v pool.Volume) (inUse bool, err error) {
	if _, err := os.Stat(image(v)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	devices, err := b.attached(v)
	if err != nil || len(devices) == 0 {
		return false, err
	}
	for _, device := range devices {
		_, detachErr := b.run("losetup", "--detach", device)
		err = errors.Join(err, detachErr)
	}
	if err != nil {
		return true, err
	}
	devices, err = b.attached(v)
	return len(devices) > 0, err
}

// attached returns the devices of a volume by its file: nothing else is the same after a
// restart of the driver.
func (b Images) attached(v pool.Volume) ([]string, error) {
	out, err := b.run("losetup", "--associated", image(v), "--noheadings", "--output", "NAME")
	return strings.Fields(out), err
}

func (b Images) run(program string, arguments ...string) (string, error) {
	out, err := b.Exec.Command(program, arguments...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", program, strings.Join(arguments, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
