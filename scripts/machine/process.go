package machine

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// Process is a process that leads a process group of its own.
type Process struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	// Start is when the process began, as the system tells it. PIDs are used
	// again; a PID with its start time is not.
	Start string `json:"start"`
	// Mark is in the environment of the process and of all that it started.
	Mark string `json:"mark"`
}

// MarkVariable carries a process's mark.
const MarkVariable = "CAPACITYV2_CLUSTER"

// NewProcess describes a process that was just started with the mark.
func NewProcess(name string, pid int, mark string) (Process, error) {
	start, err := processStart(pid)
	if err != nil {
		return Process{}, fmt.Errorf("process %d (%s): %w", pid, name, err)
	}
	return Process{Name: name, PID: pid, Start: start, Mark: mark}, nil
}

// Alive is false for another process that has the same PID by now.
func (p Process) Alive() bool {
	start, err := processStart(p.PID)
	return err == nil && start == p.Start
}

// errGone says that there is no such process, or only what is left of one.
var errGone = errors.New("no such process")

// Stop asks the process to end and waits. After grace it ends the process and
// what is left of its group: nothing may stay.
func (p Process) Stop(ctx context.Context, grace time.Duration) error {
	if p.Alive() {
		if err := kill(p.PID, syscall.SIGTERM); err != nil {
			return fmt.Errorf("end %s (pid %d): %w", p.Name, p.PID, err)
		}
		WaitUntil(ctx, grace, func() bool { return !p.Alive() })
	}
	ended := WaitUntil(ctx, 20*time.Second, func() bool {
		if p.Alive() {
			_ = kill(p.PID, syscall.SIGKILL)
			return false
		}
		rest, ending := groupMembers(p.PID, p.Mark)
		for _, pid := range rest {
			_ = kill(pid, syscall.SIGKILL)
		}
		return len(rest) == 0 && !ending
	})
	if !ended {
		return fmt.Errorf("%s (process group %d) does not end", p.Name, p.PID)
	}
	return nil
}

func kill(pid int, sig syscall.Signal) error {
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// WaitUntil polls f and returns whether it became true in time.
func WaitUntil(ctx context.Context, d time.Duration, f func() bool) bool {
	deadline := time.Now().Add(d)
	for !f() {
		if time.Now().After(deadline) || ctx.Err() != nil {
			return f()
		}
		time.Sleep(100 * time.Millisecond)
	}
	return true
}
