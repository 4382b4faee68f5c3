// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"capacityv2.internal/scripts/ground/run"
)

// start starts a shell with one child, as upstream's script has. It returns the child.
func start(t *testing.T, mark, script string) int {
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
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }()
	t.Cleanup(func() { _ = syscall.Kill(child, syscall.SIGKILL); _ = syscall.Kill(cmd.Process.Pid, syscall.SIGKILL) })
	return child
}

// TestEnvironmentFromTheStart asks right after the start: one of ten programs does not have its
// variables yet, and would live on after Stop.
func TestEnvironmentFromTheStart(t *testing.T) {
	for i := range 200 {
		cmd := exec.Command("sleep", "60")
		cmd.Env = []string{"A=b"}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		got := environment(fmt.Sprintf("/proc/%d", cmd.Process.Pid))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if !slices.Equal(got, []string{"A=b", ""}) {
			t.Fatalf("process %d: %q", i, got)
		}
	}
}

func TestStopEndsWhatHasTheMark(t *testing.T) {
	other := start(t, "m2", `sleep 60 >/dev/null & echo $!; wait`)
	for name, script := range map[string]string{
		"that ends at once": `sleep 60 >/dev/null & echo $!; wait`,
		"that ignores TERM": `trap '' TERM; sleep 60 >/dev/null & echo $!; while :; do wait; done`,
		// One that ends loses it, too, before its files and ports.
		"that loses the mark first": `trap 'exec env -i sleep 1' TERM; echo $$; while :; do sleep 0.1; done`,
		"whose parent has died":     `(sleep 60 >/dev/null & echo $!)`,
	} {
		t.Run(name, func(t *testing.T) {
			child := start(t, "m1", script)
			if !Alive("m1") {
				t.Fatal("not alive after its start")
			}
			if err := Stop(t.Context(), "m1", 300*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if Alive("m1") || (process{pid: child}).holds() {
				t.Error("something lives on")
			}
			if err := Stop(t.Context(), "m1", time.Second); err != nil {
				t.Errorf("a second time: %v", err)
			}
		})
	}
	if !Alive("m2") || !(process{pid: other}).holds() {
		t.Error("ended a process with another mark")
	}
}

// TestStopAsksTheEldest checks that a process may end those that it has started in its own way.
func TestStopAsksTheEldest(t *testing.T) {
	said := filepath.Join(t.TempDir(), "said")
	start(t, "m3", `trap 'echo parent >>`+said+`; kill -WINCH $child; exit' TERM
		sh -c 'trap "echo asked >>`+said+`" TERM; trap "echo child >>`+said+`; exit" WINCH; echo ready >`+said+`; while :; do sleep 0.1; done' >/dev/null & child=$!; echo $child; wait`)
	read := func() string { b, _ := os.ReadFile(said); return string(b) }
	if !WaitUntil(t.Context(), 10*time.Second, func() bool { return read() == "ready\n" }) {
		t.Fatal("the child is not ready")
	}
	if err := Stop(t.Context(), "m3", 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if got := read(); got != "ready\nparent\nchild\n" {
		t.Errorf("said %q, want the parent to be asked, and the child by it", got)
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := Lock(path, "busy")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(path, "busy"); !run.IsRefusal(err) {
		t.Errorf("got %v, want a refusal", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Lock(path, "busy")
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

func TestMissingFolders(t *testing.T) {
	dir := t.TempDir()
	want := []string{filepath.Join(dir, "cni"), filepath.Join(dir, "cni", "bin")}
	if got := MissingFolders(filepath.Join(dir, "cni", "bin")); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := MissingFolders(dir); got != nil {
		t.Errorf("for an existing one: %v", got)
	}
}
