// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"capacityv2.internal/scripts/ground/run"
)

// MarkVariable carries a mark in the environment of a process, and of all that it starts. By it
// they are found again: the number of a process may be another one's by then.
const MarkVariable = "CAPACITYV2_CLUSTER"

// process is a living process with a mark.
type process struct{ pid, parent int }

// marked returns the living processes with the mark.
func marked(mark string) []process {
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is right
	var all []process
	for _, file := range files {
		if !slices.Contains(environment(filepath.Dir(file)), MarkVariable+"="+mark) {
			continue // another one, or it has ended
		}
		var p process
		if _, err := fmt.Sscanf(file, "/proc/%d/", &p.pid); err == nil {
			_, p.parent = stat(p.pid)
			all = append(all, p)
		}
	}
	return all
}

// environment returns the variables of the process at dir in /proc, none where it has ended. One that
// begins with its program has no arguments yet, and then no variables, for a moment: it is asked again.
func environment(dir string) []string {
	began := false
	for range 1000 {
		variables, _ := os.ReadFile(filepath.Join(dir, "environ"))
		_, err := os.Readlink(filepath.Join(dir, "exe"))
		if len(variables) > 0 || began || err != nil { // no program: it ends, or is the kernel's
			return strings.Split(string(variables), "\x00")
		}
		arguments, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		began = len(arguments) > 0
		time.Sleep(time.Millisecond)
	}
	return nil
}

// holds reports whether the process has files and ports: a zombie has none.
func (p process) holds() bool {
	state, _ := stat(p.pid)
	return state != "" && state != "Z" && state != "X"
}

// stat returns the state of a process, "" where there is none, and the number of its parent.
func stat(pid int) (state string, parent int) {
	content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	// The name, in parentheses, may hold some itself, and spaces.
	_, _ = fmt.Sscan(string(content[bytes.LastIndexByte(content, ')')+1:]), &state, &parent)
	return state, parent
}

// Alive reports whether a process with the mark lives.
func Alive(mark string) bool { return len(marked(mark)) > 0 }

// Stop asks the processes with the mark to end, of each family the eldest, and waits. After grace it
// ends what is left: nothing may stay.
func Stop(ctx context.Context, mark string, grace time.Duration) error {
	all := marked(mark)
	for _, p := range all {
		if slices.ContainsFunc(all, func(o process) bool { return o.pid == p.parent }) {
			continue
		}
		if err := syscall.Kill(p.pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end process %d: %w", p.pid, err)
		}
	}
	WaitUntil(ctx, grace, func() bool { return !Alive(mark) })
	ended := WaitUntil(ctx, 20*time.Second, func() bool {
		left := marked(mark)
		for _, p := range left {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		// One that ends loses its environment first, and its files and ports later.
		return len(left) == 0 && !slices.ContainsFunc(all, process.holds)
	})
	if !ended {
		return fmt.Errorf("processes with %s=%s do not end: %v", MarkVariable, mark, all)
	}
	return nil
}

// Lock keeps others from what is done under the file at path, until it is closed or this process ends.
// It refuses, with what is done as at, where somebody else has the lock.
func Lock(path, at string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = run.Refuse(at, "one at a time", "wait for it, or end it")
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
