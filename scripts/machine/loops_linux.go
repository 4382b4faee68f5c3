package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// DetachLoops detaches the loop devices of the files below dir, and those that a kubelet has
// on top of them: they outlive what has made them, and belong to no namespace.
func DetachLoops(ctx context.Context, dir string) error {
	ours := map[string]bool{}
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
		// By inode: the path is what another mount namespace once saw.
		out, err := losetup(ctx, "--list", "--noheadings", "--output", "NAME,BACK-MAJ:MIN,BACK-INO")
		if err != nil {
			return err
		}
		for line := range strings.Lines(out) {
			fields := strings.Fields(line)
			if !ours[strings.Join(fields[1:], " ")] || slices.Contains(devices, fields[0]) {
				continue
			}
			devices = append(devices, fields[0])
			if err := addFile(ours, fields[0]); err != nil {
				return err
			}
		}
	}
	var errs []error
	for _, device := range slices.Backward(devices) {
		_, err := losetup(ctx, "--detach", device)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// addFile adds a file as losetup prints it.
func addFile(files map[string]bool, path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	stat := info.Sys().(*syscall.Stat_t)
	// As the kernel encodes the number of a device.
	major, minor := stat.Dev>>8&0xfff, stat.Dev&0xff|stat.Dev>>12&0xfff00
	files[fmt.Sprintf("%d:%d %d", major, minor, stat.Ino)] = true
	return nil
}

func losetup(ctx context.Context, arguments ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "losetup", arguments...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("losetup %s: %w: %s", strings.Join(arguments, " "), err, out)
	}
	return string(out), nil
}
