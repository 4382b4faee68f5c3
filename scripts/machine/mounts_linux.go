package machine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/moby/sys/mountinfo"
)

// UnmountBelow unmounts what is mounted below dir, the newest first.
func UnmountBelow(dir string) error {
	mounts, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		return !strings.HasPrefix(m.Mountpoint, dir+"/"), false
	})
	errs := []error{err}
	for _, m := range slices.Backward(mounts) {
		if err := syscall.Unmount(m.Mountpoint, 0); err != nil {
			errs = append(errs, fmt.Errorf("unmount %s: %w", m.Mountpoint, err))
		}
	}
	return errors.Join(errs...)
}
