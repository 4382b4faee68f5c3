package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/mount-utils"

	"capacityv2.internal/test-e2e/driver/pool"
)

// device is the file in a staging path on which a block volume is mounted.
const device = "device"

// staged returns what is mounted when a volume is staged at a path.
func staged(v pool.Volume, path string) string {
	if v.Block {
		return filepath.Join(path, device)
	}
	return path
}

// bind mounts something for a volume at a path, unless that is done.
func bind(mounter mount.Interface, v pool.Volume, path string, attach func() (source, fsType string, options []string, err error)) error {
	mounted, err := isMounted(mounter, path)
	if err != nil || mounted {
		return err
	}
	if v.Block {
		if err = os.MkdirAll(filepath.Dir(path), 0o750); err == nil {
			err = os.WriteFile(path, nil, 0o640)
		}
	} else {
		err = os.MkdirAll(path, 0o750)
	}
	if err != nil {
		return err
	}
	source, fsType, options, err := attach()
	if err != nil {
		return err
	}
	return mounter.Mount(source, path, fsType, options)
}

// mount makes a volume usable at its staging path.
func (m *Manager) mount(v pool.Volume, path string, options []string) error {
	err := bind(m.Mounter, v, staged(v, path), func() (string, string, []string, error) {
		if err := m.Store.Mounted(v); err != nil { // Another disk may have an old copy.
			return "", "", nil, err
		}
		source, fsType, own, err := m.Backing.Attach(v)
		return source, fsType, append(own, options...), err
	})
	if err == nil && !v.Block {
		_, err = m.Backing.Detach(v) // when it is unmounted, also if the node is killed
	}
	return err
}

// unmount undoes mount, also if only half of it was done, and fails while something else uses the
// volume. Nothing but the path need be known.
func (m *Manager) unmount(v pool.Volume, path string) error {
	if err := m.unmountAt(path); err != nil {
		return err
	}
	if v.Block {
		if err := os.Remove(staged(v, path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if v.Path == "" {
		return nil
	}
	inUse, err := m.Backing.Detach(v)
	for look := 0; err == nil && inUse && look < looks; look++ {
		time.Sleep(moment / looks)
		inUse, err = m.Backing.Detach(v)
	}
	if err == nil && inUse {
		// Perhaps it is mounted in another mount namespace, or for a pod.
		err = errors.New("it is still in use")
	}
	return err
}

// A device may be open for a moment, in a losetup that looks for a free one. What has it open for longer uses it.
const (
	moment = time.Second
	looks  = 20
)

// unmountAt unmounts what is mounted at a staging path, or in it.
func (m *Manager) unmountAt(path string) error {
	for _, target := range []string{filepath.Join(path, device), path} {
		mounted, err := isMounted(m.Mounter, target)
		if err == nil && mounted {
			err = m.Mounter.Unmount(target)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func isMounted(mounter mount.Interface, path string) (bool, error) {
	mounted, err := mounter.IsMountPoint(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return mounted, err
}
