//go:build !linux

package machine

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"capacityv2.internal/scripts/run"
)

// processStart returns the start time as ps tells it.
func processStart(pid int) (string, error) {
	out, err := run.Cmd{Name: "ps", Args: []string{"-o", "stat=,lstart=", "-p", strconv.Itoa(pid)}}.Output(context.Background())
	stat, start, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || start == "" || strings.HasPrefix(stat, "Z") {
		return "", errGone
	}
	return strings.TrimSpace(start), nil
}

// groupMembers returns the living processes of the group that carry the mark:
// the number alone could be another group's by now.
func groupMembers(pgid int, mark string) (pids []int, ending bool) {
	out, err := run.Cmd{Name: "ps", Args: []string{"-axEwwo", "pid=,pgid=,stat=,command="}}.Output(context.Background())
	if err != nil {
		return nil, false
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 4 || f[1] != strconv.Itoa(pgid) || strings.HasPrefix(f[2], "Z") || !slices.Contains(f[3:], MarkVariable+"="+mark) {
			continue
		}
		if pid, err := strconv.Atoi(f[0]); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, false
}
