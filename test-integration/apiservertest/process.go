package apiservertest

import (
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
	name := filepath.Base(program)
	log := filepath.Join(tCtx.TempDir(), name+".log")
	out, err := os.Create(log)
	if err != nil {
		tCtx.Fatal(err)
	}
	p := &Process{cmd: exec.Command(program, args...), name: name, log: log, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	_ = os.Getenv("PROGRAMS") // read, so that go test runs this test again with other programs
	p.cmd.Env = append(os.Environ(), env...)
	if err := p.cmd.Start(); err != nil {
		tCtx.Fatalf("start %s: %v", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		out.Close()
		close(p.done)
	}()
	// Before the other cleanup: what the program said matters when a test failed.
	tCtx.Cleanup(func() {
		p.Stop(tCtx)
		if tCtx.Failed() {
			tCtx.Logf("end of the log of %s:\n%s", name, p.Log())
		}
	})
	return p
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
	if _, ended := p.Ended(); ended {
		return
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		tCtx.Errorf("%s still runs %s after SIGTERM", p.name, stopTimeout)
		p.cmd.Process.Kill()
		<-p.done
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
