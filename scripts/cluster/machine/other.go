// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package machine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"capacityv2.internal/scripts/ground/run"
)

// NodeObstacle says what keeps a node from running on this machine.
func NodeObstacle() string { return "the kubelet runs on Linux only, this is " + runtime.GOOS }

// RequireBridge has nothing to refuse: there are no nodes.
func RequireBridge(int) error { return nil }

func MakeGroup(string) error { return errors.ErrUnsupported }

func Groups(string) []string { return nil }

func RemoveGroups(context.Context, string) error { return nil }

func DetachLoops(string) error { return nil }

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
