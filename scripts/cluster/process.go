package cluster

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// process is a process that leads a process group of its own.
type process struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	// Start is when the process began, as the system tells it. PIDs are used
	// again; a PID with its start time is not.
	Start string `json:"start"`
	// Mark is in the environment of the process and of all that it started.
	Mark string `json:"mark"`
}

// markVariable carries a process's mark.
const markVariable = "CAPACITYV2_CLUSTER"

// newProcess describes a process that was just started with the mark.
func newProcess(name string, pid int, mark string) (process, error) {
	start, err := processStart(pid)
	if err != nil {
		return process{}, fmt.Errorf("process %d (%s): %w", pid, name, err)
	}
	return process{Name: name, PID: pid, Start: start, Mark: mark}, nil
}

// alive is false for another process that has the same PID by now.
func (p process) alive() bool {
	start, err := processStart(p.PID)
	return err == nil && start == p.Start
}

// errGone says that there is no such process, or only what is left of one.
var errGone = errors.New("no such process")

// stop asks the process to end and waits. After grace it ends the process and
// what is left of its group: nothing may stay.
func (p process) stop(ctx context.Context, grace time.Duration) error {
	if p.alive() {
		if err := kill(p.PID, syscall.SIGTERM); err != nil {
			return fmt.Errorf("end %s (pid %d): %w", p.Name, p.PID, err)
		}
		waitUntil(ctx, grace, func() bool { return !p.alive() })
	}
	ended := waitUntil(ctx, 20*time.Second, func() bool {
		if p.alive() {
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

// waitUntil polls f and returns whether it became true in time.
func waitUntil(ctx context.Context, d time.Duration, f func() bool) bool {
	deadline := time.Now().Add(d)
	for !f() {
		if time.Now().After(deadline) || ctx.Err() != nil {
			return f()
		}
		time.Sleep(100 * time.Millisecond)
	}
	return true
}
