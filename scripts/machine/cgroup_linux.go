package machine

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// cgroupRoot is where the control group file systems are mounted.
const cgroupRoot = "/sys/fs/cgroup"

// hierarchy is a mounted control group file system.
type hierarchy struct {
	path    string
	unified bool // version 2
	// beside marks version 2 without controllers beside version 1: runc makes
	// groups there too.
	beside bool
	cpuset bool // version 1, new groups begin without CPUs and memory nodes
}

// cgroupHierarchies returns what the kubelet uses: version 2 alone, or all
// hierarchies of version 1.
func cgroupHierarchies() ([]hierarchy, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return nil, err
	}
	var v1, v2 []hierarchy
	for _, m := range mounts {
		switch {
		case !strings.HasPrefix(m.Mountpoint, cgroupRoot):
		case m.FSType == "cgroup2" && m.Mountpoint == cgroupRoot:
			v2 = append(v2, hierarchy{path: m.Mountpoint, unified: true})
		case m.FSType == "cgroup2":
			v1 = append(v1, hierarchy{path: m.Mountpoint, beside: true})
		default:
			v1 = append(v1, hierarchy{path: m.Mountpoint, cpuset: slices.Contains(strings.Split(m.VFSOptions, ","), "cpuset")})
		}
	}
	if len(v2) > 0 {
		return v2, nil
	}
	for _, need := range []string{"cpu", "cpuset", "memory", "pids"} {
		if _, err := os.Stat(filepath.Join(cgroupRoot, need)); err != nil {
			return nil, fmt.Errorf("no control group %q", need)
		}
	}
	return v1, nil
}

// wantControllers are those that the kubelet asks for where the kernel has them.
var wantControllers = []string{"cpu", "cpuset", "memory", "hugetlb", "pids"}

// missingControllers returns which of [wantControllers] the kernel has but does
// not pass on to groups below the root.
func (h hierarchy) missingControllers() ([]string, error) {
	has, err := os.ReadFile(filepath.Join(h.path, "cgroup.controllers"))
	if err != nil {
		return nil, err
	}
	passed, err := os.ReadFile(filepath.Join(h.path, "cgroup.subtree_control"))
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, c := range wantControllers {
		if contains(has, c) && !contains(passed, c) {
			missing = append(missing, c)
		}
	}
	return missing, nil
}

func contains(list []byte, word string) bool {
	return strings.Contains(" "+strings.TrimSpace(string(list))+" ", " "+word+" ")
}

// probe makes a group and removes it again.
func (h hierarchy) probe() error {
	if h.unified {
		missing, err := h.missingControllers()
		if err != nil {
			return err
		}
		// The file is in all groups but the real root: inside a container, where
		// a group that holds processes cannot pass controllers on.
		if _, err := os.Stat(filepath.Join(h.path, "cgroup.type")); err == nil && len(missing) > 0 {
			return fmt.Errorf("%s does not pass on %s", h.path, strings.Join(missing, ", "))
		}
	}
	dir := filepath.Join(h.path, "capacityv2-probe-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return os.Remove(dir)
}

// MakeGroup makes a group in every hierarchy. It tells the record what it is about to
// make or change.
func MakeGroup(name string, record Record) error {
	hs, err := cgroupHierarchies()
	if err != nil {
		return err
	}
	for _, h := range hs {
		dir := filepath.Join(h.path, name)
		if err := record.Group(dir); err != nil {
			return err
		}
		if h.unified {
			missing, err := h.missingControllers()
			if err != nil {
				return err
			}
			if err := passOn(h, missing, record); err != nil {
				return err
			}
		}
		if h.beside {
			continue // recorded, because runc makes it
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if h.cpuset {
			for _, f := range []string{"cpuset.cpus", "cpuset.mems"} {
				b, err := os.ReadFile(filepath.Join(h.path, f))
				if err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(dir, f), b, 0o644); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// passOn lets the root pass the controllers on; the undo takes them back.
func passOn(h hierarchy, controllers []string, record Record) error {
	file := filepath.Join(h.path, "cgroup.subtree_control")
	if len(controllers) == 0 {
		return nil
	}
	if err := record.Setting(file, "-"+strings.Join(controllers, " -")); err != nil {
		return err
	}
	return os.WriteFile(file, []byte("+"+strings.Join(controllers, " +")), 0o644)
}

// RemoveGroup removes a group with all groups below it.
func RemoveGroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := RemoveGroup(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return os.Remove(dir)
}

// CgroupV1 reports whether the kubelet finds the old control groups.
func CgroupV1() bool {
	hs, err := cgroupHierarchies()
	return err == nil && len(hs) > 0 && !hs[0].unified
}

// GroupPaths returns where the group name is in every hierarchy.
func GroupPaths(name string) []string {
	hs, err := cgroupHierarchies()
	if err != nil {
		return nil
	}
	var ps []string
	for _, h := range hs {
		ps = append(ps, filepath.Join(h.path, name))
	}
	return ps
}

// Groups returns the names of the groups at the top whose name begins so.
func Groups(prefix string) []string {
	hs, err := cgroupHierarchies()
	if err != nil {
		return nil
	}
	names := map[string]bool{}
	for _, h := range hs {
		found, _ := filepath.Glob(filepath.Join(h.path, prefix+"*"))
		for _, f := range found {
			names[filepath.Base(f)] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
