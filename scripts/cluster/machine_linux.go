package cluster

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"capacityv2.internal/scripts/progress"
)

// namespaces are what a node has of its own.
const namespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS

// nodeObstacle says what keeps a node from running on this machine; "" means
// nothing does. A node that uses the host's own namespaces needs no others.
func nodeObstacle(hostNamespaces bool) string {
	if os.Geteuid() != 0 {
		return "not root"
	}
	if !hostNamespaces {
		cmd := exec.Command("true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
		if err := cmd.Run(); err != nil {
			return "no namespaces: " + err.Error()
		}
	}
	hs, err := cgroupHierarchies()
	if err != nil {
		return err.Error()
	}
	for _, h := range hs {
		if err := h.probe(); err != nil {
			return "control groups cannot be made: " + err.Error()
		}
	}
	return ""
}

// requireBridge refuses where the nodes cannot be connected.
func requireBridge(nodes int) error {
	if nodes < 2 {
		return nil
	}
	cmd := exec.Command("ip", "link", "add", bridge, "type", "bridge")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if out, err := cmd.CombinedOutput(); err != nil {
		return progress.Refuse(fmt.Sprintf("no bridge for %d nodes: %v: %s", nodes, err, bytes.TrimSpace(out)), "a kernel that has bridges", "modprobe bridge, or make up NODES=1")
	}
	return nil
}

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
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var v1, v2 []hierarchy
	for sc := bufio.NewScanner(f); sc.Scan(); {
		fields := strings.Fields(sc.Text())
		_, after, ok := strings.Cut(sc.Text(), " - ")
		if !ok || len(fields) < 5 || !strings.HasPrefix(fields[4], "/sys/fs/cgroup") {
			continue
		}
		kind := strings.Fields(after)
		switch {
		case len(kind) > 0 && kind[0] == "cgroup2" && fields[4] == "/sys/fs/cgroup":
			v2 = append(v2, hierarchy{path: fields[4], unified: true})
		case len(kind) > 0 && kind[0] == "cgroup2":
			v1 = append(v1, hierarchy{path: fields[4], beside: true})
		case len(kind) > 2 && kind[0] == "cgroup":
			v1 = append(v1, hierarchy{path: fields[4], cpuset: strings.Contains(","+kind[2]+",", ",cpuset,")})
		}
	}
	if len(v2) > 0 {
		return v2, nil
	}
	for _, need := range []string{"cpu", "cpuset", "memory", "pids"} {
		if _, err := os.Stat(filepath.Join("/sys/fs/cgroup", need)); err != nil {
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

// makeGroup makes a group in every hierarchy. It records in st what it is about
// to make or change, through save.
func makeGroup(name string, st *state, save func() error) error {
	hs, err := cgroupHierarchies()
	if err != nil {
		return err
	}
	for _, h := range hs {
		dir := filepath.Join(h.path, name)
		st.Cgroups = append(st.Cgroups, dir)
		if err := save(); err != nil {
			return err
		}
		if h.unified {
			missing, err := h.missingControllers()
			if err != nil {
				return err
			}
			if err := passOn(h, missing, st, save); err != nil {
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
func passOn(h hierarchy, controllers []string, st *state, save func() error) error {
	file := filepath.Join(h.path, "cgroup.subtree_control")
	if len(controllers) == 0 {
		return nil
	}
	st.set(file, "-"+strings.Join(controllers, " -"))
	if err := save(); err != nil {
		return err
	}
	return os.WriteFile(file, []byte("+"+strings.Join(controllers, " +")), 0o644)
}

// removeGroup removes a group with all groups below it.
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

// hasDefaultRoute reports whether the network that we are in has one: the API
// server asks it for the address to announce.
func hasDefaultRoute() bool {
	b, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 7 && f[1] == "00000000" && f[7] == "00000000" {
			return true
		}
	}
	return false
}

// hostRoutes returns where the host's routes lead, without the default one.
func hostRoutes() ([]netip.Prefix, error) {
	b, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return nil, err
	}
	var ps []netip.Prefix
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 8 || f[0] == "Iface" {
			continue
		}
		dst, errD := strconv.ParseUint(f[1], 16, 32)
		mask, errM := strconv.ParseUint(f[7], 16, 32)
		if errD != nil || errM != nil || mask == 0 {
			continue
		}
		// The kernel writes addresses in the machine's byte order.
		var a [4]byte
		binary.NativeEndian.PutUint32(a[:], uint32(dst))
		ps = append(ps, netip.PrefixFrom(netip.AddrFrom4(a), bits.OnesCount32(uint32(mask))))
	}
	return ps, nil
}

// cgroupV1 reports whether the kubelet finds the old control groups.
func cgroupV1() bool {
	hs, err := cgroupHierarchies()
	return err == nil && len(hs) > 0 && !hs[0].unified
}

// groupPaths returns where the group name is in every hierarchy.
func groupPaths(name string) []string {
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
