// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"capacityv2.internal/scripts/cluster/machine"
)

// TestRunPrograms runs programs in a process of its own, which collects all that end.
func TestRunPrograms(t *testing.T) {
	const inner = "CAPACITYV2_TEST_PROGRAMS"
	if dir := os.Getenv(inner); dir != "" {
		runInner(t, dir)
		return
	}
	for name, tc := range map[string]struct{ restarts, log string }{
		"restarts":    {"yes", "began\nbegan\n"},
		"ends":        {"no", "began\n"},
		"hardly runs": {"hardly", "began\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.Command(os.Args[0], "-test.run=^TestRunPrograms$")
			cmd.Env = append(os.Environ(), inner+"="+dir, "RESTARTS="+tc.restarts)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			log, err := os.ReadFile(filepath.Join(dir, "log"))
			if err != nil || !strings.HasPrefix(string(log), tc.log) || tc.restarts != "yes" && string(log) != tc.log {
				t.Errorf("log %q, %v, want %q", log, err, tc.log)
			}
		})
	}
}

// runInner runs a program that ends and one that does not, until the first one has begun
// twice, or has ended for good.
func runInner(t *testing.T, dir string) {
	restarts := os.Getenv("RESTARTS")
	shortRun = 10 * time.Millisecond
	if restarts == "hardly" {
		shortRun = time.Hour
	}
	log := filepath.Join(dir, "log")
	s := &Spec{Programs: []Program{
		{Args: []string{"sh", "-c", "echo began; sleep 0.2; exit 3"}, Dir: dir, Log: log, Restarts: restarts != "no"},
		{Args: []string{"sleep", "60"}, Dir: dir, Log: filepath.Join(dir, "other")},
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	endings := make(chan ending)
	ended := make(chan error, 1)
	go func() { ended <- s.runPrograms(ctx, endings) }()
	if !machine.WaitUntil(ctx, 20*time.Second, func() bool { return machine.Exists(filepath.Join(dir, "other")) }) {
		t.Error("the programs have not begun")
	}
	go reap(endings)
	if restarts == "yes" {
		if !machine.WaitUntil(ctx, 20*time.Second, func() bool {
			b, _ := os.ReadFile(log)
			return strings.Count(string(b), "began") >= 2
		}) {
			t.Error("it has not begun twice")
		}
		cancel()
	}
	err := <-ended
	if err == nil || !strings.Contains(err.Error(), "ended by itself") {
		t.Errorf("got %v, want an error that says which program ended", err)
	}
	if restarts != "yes" && (errors.Is(ctx.Err(), context.DeadlineExceeded) || !strings.Contains(err.Error(), "sh ended by itself: exit code 3")) {
		t.Errorf("got %v, want the exit code of the first program at once", err)
	}
}
