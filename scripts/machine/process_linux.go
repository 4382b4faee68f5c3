package machine

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// processStart returns the start time in clock ticks since boot, and the boot's
// identity, because the ticks begin again with the next one.
func processStart(pid int) (string, error) {
	f, err := statFields(pid)
	if err != nil {
		return "", err
	}
	if f[0] == "Z" || f[0] == "X" {
		return "", errGone
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(boot)) + "/" + f[19], nil
}

// statFields returns the fields of /proc/PID/stat from the state on: the name
// before it may hold spaces and parentheses.
func statFields(pid int) ([]string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, errGone
	}
	s := string(b)
	f := strings.Fields(s[strings.LastIndex(s, ")")+1:])
	if len(f) < 20 {
		return nil, fmt.Errorf("/proc/%d/stat: %d fields", pid, len(f))
	}
	return f, nil
}

// groupMembers returns the living processes of the group that carry the mark: the
// number alone could be another group's by now. ending is true when one is on its
// way out: the kernel takes its environment away first, and its files and ports
// later.
func groupMembers(pgid int, mark string) (pids []int, ending bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, false
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		f, err := statFields(pid)
		if err != nil || f[0] == "Z" || f[0] == "X" || f[2] != strconv.Itoa(pgid) {
			continue
		}
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		ending = ending || err == nil && len(env) == 0
		if err == nil && slices.Contains(strings.Split(string(env), "\x00"), MarkVariable+"="+mark) {
			pids = append(pids, pid)
		}
	}
	return pids, ending
}
