// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestRunRepeatsTheLastLinesOfAFailure(t *testing.T) {
	var log strings.Builder
	err := Cmd{Log: &log, Name: "sh", Args: []string{"-c", "seq 100; echo broken >&2; exit 3"}}.Run(context.Background())
	if ExitCode(err) != 3 {
		t.Errorf("exit code %d, want 3: %v", ExitCode(err), err)
	}
	if !strings.Contains(err.Error(), "broken") || strings.Contains(err.Error(), "\n    50\n") {
		t.Errorf("want the last lines only:\n%v", err)
	}
	if !strings.Contains(log.String(), "\n50\n") {
		t.Error("the log lacks a line")
	}
}

func TestOutputKeepsStandardErrorOut(t *testing.T) {
	out, err := Cmd{Name: "sh", Args: []string{"-c", "echo noise >&2; echo $A"}, Env: []string{"A=value"}}.Output(context.Background())
	if err != nil || string(out) != "value\n" {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestRunEndsChildrenToo(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	err := Cmd{Name: "sh", Args: []string{"-c", "sleep 60 & wait"}}.Run(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	// Far below stopGrace and the sleep: the child ended with its parent.
	if time.Since(begin) > 15*time.Second {
		t.Errorf("took %s", time.Since(begin))
	}
}

func TestRunEndsStubbornChildren(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	out, err := Cmd{Name: "sh", Args: []string{"-c", "trap '' TERM; sleep 60 >/dev/null 2>&1 & echo $!; trap - TERM; wait"}}.Output(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Second); syscall.Kill(pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("the child lives on")
		}
	}
}
