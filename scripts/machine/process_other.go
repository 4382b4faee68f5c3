//go:build !linux

package machine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"capacityv2.internal/scripts/run"
)

// marked returns the living processes with the mark.
func marked(mark string) []process {
	// Zombies have no environment.
	out, _ := run.Cmd{Name: "ps", Args: []string{"-axEwwo", "pid=,ppid=,command="}}.Output(context.Background())
	var all []process
	for line := range strings.Lines(string(out)) {
		var p process
		if _, err := fmt.Sscan(line, &p.pid, &p.parent); err == nil && slices.Contains(strings.Fields(line), MarkVariable+"="+mark) {
			all = append(all, p)
		}
	}
	return all
}

// holds reports whether there is such a process.
func (p process) holds() bool { return syscall.Kill(p.pid, 0) == nil }
