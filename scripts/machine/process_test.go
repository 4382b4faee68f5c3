package machine

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startGroup starts a shell that leads a session and has one child, as upstream's
// script does. It returns the shell and the child's PID.
func startGroup(t *testing.T, mark, script string) (Process, int) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Env = append(os.Environ(), MarkVariable+"="+mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := NewProcess("test", cmd.Process.Pid, mark)
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }()
	t.Cleanup(func() { _ = syscall.Kill(child, syscall.SIGKILL) })
	return p, child
}

func lives(pid int) bool {
	_, err := processStart(pid)
	return err == nil
}

func TestStopEndsLeaderAndGroup(t *testing.T) {
	for name, script := range map[string]string{
		"that ends at once": `sleep 60 >/dev/null & echo $!; wait`,
		"that ignores TERM": `trap '' TERM; sleep 60 >/dev/null & echo $!; while :; do wait; done`,
	} {
		t.Run(name, func(t *testing.T) {
			p, child := startGroup(t, "m1", script)
			if !p.Alive() {
				t.Fatal("not alive after its start")
			}
			if err := p.Stop(t.Context(), 300*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if p.Alive() || !WaitUntil(t.Context(), 5*time.Second, func() bool { return !lives(child) }) {
				t.Error("something lives on")
			}
			if err := p.Stop(t.Context(), time.Second); err != nil {
				t.Errorf("a second time: %v", err)
			}
		})
	}
}

func TestStopSparesAReusedPID(t *testing.T) {
	p, child := startGroup(t, "m1", `sleep 60 >/dev/null & echo $!; wait`)
	other := Process{Name: "ended long ago", PID: p.PID, Start: "another boot/1", Mark: "m2"}
	if other.Alive() {
		t.Error("another start time passed for the same process")
	}
	if err := other.Stop(t.Context(), 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if !p.Alive() || !lives(child) {
		t.Error("ended a process that only has the number of ours")
	}
	if err := p.Stop(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
}
