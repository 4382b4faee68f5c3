package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"k8s.io/mount-utils"
	"k8s.io/utils/exec"
)

// Backing is what volumes are made of.
type Backing interface {
	// Prepare makes the data of a volume in its folder as large as the volume.
	Prepare(dir string, bytes int64) error
	// Mount mounts the data in a folder at a path, unless it is.
	Mount(dir, path string, options []string) error
	// Grow makes the file system at a path as large as the data.
	Grow(path string) error
	// Usage returns how many bytes the files at a path have and how many they can have,
	// for a volume of a size.
	Usage(path string, size int64) (used, available int64, err error)
	// IsMounted checks whether something is mounted at a path.
	IsMounted(path string) (bool, error)
}

// Folders are volumes that are folders. Nothing keeps a pod from writing more than the
// size; the books are what bounds a pool. They need nothing but bind mounts.
type Folders struct{ Mounter mount.Interface }

// Prepare does nothing: a folder has no size.
func (Folders) Prepare(string, int64) error { return nil }

// Mount binds the folder to the path.
func (b Folders) Mount(dir, path string, options []string) error {
	return mountOnce(b.Mounter, path, func() error { return b.Mounter.Mount(dir, path, "", append([]string{"bind"}, options...)) })
}

// Grow does nothing.
func (Folders) Grow(string) error { return nil }

// Usage counts what the files take on disk. Files that a pod deletes meanwhile do not
// count.
func (Folders) Usage(path string, size int64) (used, available int64, err error) {
	err = filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		used += info.Sys().(*syscall.Stat_t).Blocks * 512
		return nil
	})
	return used, max(size-used, 0), err
}

// IsMounted checks whether something is mounted at a path.
func (b Folders) IsMounted(path string) (bool, error) { return isMounted(b.Mounter, path) }

// Images are volumes that are files with an ext4 file system, on loop devices. Their
// size is enforced by the file system.
type Images struct{ Mounter *mount.SafeFormatAndMount }

func image(dir string) string { return filepath.Join(dir, "image") }

// Prepare makes a sparse file, or makes it larger.
func (Images) Prepare(dir string, bytes int64) error {
	file, err := os.OpenFile(image(dir), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && info.Size() < bytes {
		err = file.Truncate(bytes)
	}
	return errors.Join(err, file.Sync(), file.Close())
}

// Mount formats the file if it is not formatted, and mounts it. The loop device goes
// when it is unmounted.
func (b Images) Mount(dir, path string, options []string) error {
	return mountOnce(b.Mounter, path, func() error {
		return b.Mounter.FormatAndMount(image(dir), path, "ext4", append([]string{"loop"}, options...))
	})
}

// Grow makes the loop device as large as the file, and the file system as large as the
// loop device.
func (b Images) Grow(path string) error {
	device, _, err := mount.GetDeviceNameFromMount(b.Mounter, path)
	if err != nil {
		return err
	}
	if out, err := b.Mounter.Exec.Command("losetup", "--set-capacity", device).CombinedOutput(); err != nil {
		return fmt.Errorf("resize %s: %w: %s", device, err, out)
	}
	_, err = mount.NewResizeFs(exec.New()).Resize(device, path)
	return err
}

// Usage returns what the file system says.
func (Images) Usage(path string, _ int64) (used, available int64, err error) {
	var stat unix.Statfs_t
	err = unix.Statfs(path, &stat)
	return int64(stat.Blocks-stat.Bfree) * stat.Bsize, int64(stat.Bavail) * stat.Bsize, err
}

// IsMounted checks whether something is mounted at a path.
func (b Images) IsMounted(path string) (bool, error) { return isMounted(b.Mounter, path) }

func isMounted(mounter mount.Interface, path string) (bool, error) {
	mounted, err := mounter.IsMountPoint(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return mounted, err
}

func mountOnce(mounter mount.Interface, path string, do func() error) error {
	mounted, err := isMounted(mounter, path)
	if err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(path, 0o750); err != nil {
		return err
	}
	return do()
}
