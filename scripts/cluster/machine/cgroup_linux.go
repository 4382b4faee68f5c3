package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupRoot is where the control group file systems are mounted.
const cgroupRoot = "/sys/fs/cgroup"

// hierarchy is a mounted control group file system.
type hierarchy struct {
	path    string
	unified bool // version 2
	// beside marks version 2 without controllers beside version 1: runc makes groups there too.
	beside bool
}

// hierarchies returns what the kubelet uses: version 2 alone, or all hierarchies of version 1.
func hierarchies() ([]hierarchy, error) {
	if fileSystem(cgroupRoot) == unix.CGROUP2_SUPER_MAGIC {
		return []hierarchy{{path: cgroupRoot, unified: true}}, nil
	}
	for _, need := range []string{"cpu", "cpuset", "memory", "pids"} {
		if !Exists(filepath.Join(cgroupRoot, need)) {
			return nil, fmt.Errorf("no control group %q", need)
		}
	}
	entries, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return nil, err
	}
	var all []hierarchy
	for _, e := range entries {
		path := filepath.Join(cgroupRoot, e.Name())
		if magic := fileSystem(path); e.IsDir() && (magic == unix.CGROUP_SUPER_MAGIC || magic == unix.CGROUP2_SUPER_MAGIC) {
			all = append(all, hierarchy{path: path, beside: magic == unix.CGROUP2_SUPER_MAGIC})
		}
	}
	return all, nil
}

// fileSystem returns the kernel's number for the type of file system at path.
func fileSystem(path string) int64 {
	var st unix.Statfs_t
	_ = unix.Statfs(path, &st) // its zero is no file system
	return int64(st.Type)
}

// controllers are those that the kubelet asks for where the kernel has them.
var controllers = []string{"cpu", "cpuset", "memory", "hugetlb", "pids"}

// missing returns which [controllers] the kernel has but does not pass on to groups below the root.
func (h hierarchy) missing() ([]string, error) {
	has, err := os.ReadFile(filepath.Join(h.path, "cgroup.controllers"))
	if err != nil {
		return nil, err
	}
	passed, err := os.ReadFile(filepath.Join(h.path, "cgroup.subtree_control"))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(controllers), func(c string) bool {
		return !slices.Contains(strings.Fields(string(has)), c) || slices.Contains(strings.Fields(string(passed)), c)
	}), nil
}

// probe makes a group and removes it again.
func (h hierarchy) probe() error {
	if h.unified {
		missing, err := h.missing()
		if err != nil {
			return err
		}
		// The file is in all groups but the real root: inside a container, where
		// a group that holds processes cannot pass controllers on.
		if Exists(filepath.Join(h.path, "cgroup.type")) && len(missing) > 0 {
			return fmt.Errorf("%s does not pass on %s", h.path, strings.Join(missing, ", "))
		}
	}
	dir := filepath.Join(h.path, "capacityv2-probe-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return os.Remove(dir)
}

// makeGroup makes a group. Controllers that the root passes on for it stay on: groups of others
// may use them by the time it is removed.
func (h hierarchy) makeGroup(name string) error {
	if h.beside {
		return nil // runc makes it
	}
	if h.unified {
		missing, err := h.missing()
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			on := "+" + strings.Join(missing, " +")
			if err := os.WriteFile(filepath.Join(h.path, "cgroup.subtree_control"), []byte(on), 0o644); err != nil {
				return err
			}
		}
	}
	if err := os.Mkdir(filepath.Join(h.path, name), 0o755); err != nil || h.unified {
		return err
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // a new group has none
		content, err := os.ReadFile(filepath.Join(h.path, file))
		if errors.Is(err, os.ErrNotExist) {
			continue // another hierarchy
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(h.path, name, file), content, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// MakeGroup makes a control group in every hierarchy.
func MakeGroup(name string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		if err := h.makeGroup(name); err != nil {
			return err
		}
	}
	return nil
}

// Groups returns the folders of the groups at the top of all hierarchies whose name begins so.
func Groups(prefix string) []string {
	all, _ := hierarchies() // none: no groups
	var dirs []string
	for _, h := range all {
		found, _ := filepath.Glob(filepath.Join(h.path, prefix+"*"))
		dirs = append(dirs, found...)
	}
	return dirs
}

// RemoveGroups removes the groups whose name begins so, with all groups below them.
func RemoveGroups(ctx context.Context, prefix string) error {
	var errs []error
	for _, dir := range Groups(prefix) {
		var err error
		// The kernel ends the last processes a moment after their parent.
		WaitUntil(ctx, 10*time.Second, func() bool { err = removeGroup(dir); return err == nil })
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func removeGroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeGroup(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return os.Remove(dir)
}
