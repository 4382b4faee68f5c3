// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/kubernetes/test/utils/ktesting"
)

const stopTimeout = time.Minute

// Process is a program that was started.
type Process struct {
	cmd  *exec.Cmd
	name string
	log  string
	done chan struct{} // closed when it has ended
	err  error         // how it ended; read after done
}

// StartProcess starts a program with more environment than the test's. It ends with the
// test, if not earlier.
func StartProcess(tCtx ktesting.TContext, program string, env []string, args ...string) *Process {
	tCtx.Helper()
	p, err := startProcess(program, filepath.Join(tCtx.TempDir(), filepath.Base(program)+".log"), env, args...)
	tCtx.ExpectNoError(err, "start a program")
	p.endWith(tCtx)
	return p
}

// endWith has the program end with a test, if not earlier.
func (p *Process) endWith(tCtx ktesting.TContext) {
	// Before the other cleanup: what the program said matters when a test failed.
	tCtx.Cleanup(func() {
		p.Stop(tCtx)
		if tCtx.Failed() {
			tCtx.Logf("end of the log of %s:\n%s", p.name, p.Log())
		}
	})
}

func startProcess(program, log string, env []string, args ...string) (*Process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.Command(program, args...), name: filepath.Base(program), log: log, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	_ = os.Getenv("PROGRAMS") // read, so that go test runs this test again with other programs
	p.cmd.Env = append(os.Environ(), env...)
	if err := p.cmd.Start(); err != nil {
		out.Close()
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		out.Close()
		close(p.done)
	}()
	return p, nil
}

// Ended reports whether and how the program ended.
func (p *Process) Ended() (error, bool) {
	select {
	case <-p.done:
		return p.err, true
	default:
		return nil, false
	}
}

// Stop ends the program, if it still runs, and waits for its end.
func (p *Process) Stop(tCtx ktesting.TContext) {
	if err := p.end(); err != nil {
		tCtx.Error(err)
	}
}

func (p *Process) end() error {
	if _, ended := p.Ended(); ended {
		return nil
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTimeout):
		p.Kill()
		return fmt.Errorf("%s still runs %s after SIGTERM", p.name, stopTimeout)
	}
}

// Kill ends the program at once, and waits for its end.
func (p *Process) Kill() {
	p.cmd.Process.Kill()
	<-p.done
}

// Output returns what the program has printed.
func (p *Process) Output() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Log returns the end of what the program has printed.
func (p *Process) Log() string {
	output := p.Output()
	return output[max(0, len(output)-4096):]
}
