// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// tailLines is how much of a failed program's output its error repeats.
const tailLines = 15

// stopGrace is how long a program gets between SIGTERM and SIGKILL.
const stopGrace = 20 * time.Second

// Cmd is a program to run. The zero values of Dir, Env, Stdin and Log mean the
// current folder, our environment, no input and no log.
type Cmd struct {
	Dir   string
	Env   []string                   // added to our environment
	Drop  func(variable string) bool // NAME=value of our environment that it does not get; may be nil
	Stdin io.Reader
	Log   io.Writer
	Name  string
	Args  []string
}

// Run runs c to its end and returns an error that holds the last lines of its
// output.
func (c Cmd) Run(ctx context.Context) error {
	return c.Stream(ctx, nil)
}

// Output runs c and returns its standard output; standard error goes to the log.
func (c Cmd) Output(ctx context.Context) ([]byte, error) {
	var out bytes.Buffer
	err := c.Stream(ctx, &out)
	return out.Bytes(), err
}

// Stream is [Cmd.Output] for a program with so much output that it is good to see
// it while it runs. If out is nil, it goes to the log.
func (c Cmd) Stream(ctx context.Context, out io.Writer) error {
	cmd := exec.CommandContext(ctx, c.Name, c.Args...)
	cmd.Dir = c.Dir
	cmd.Env = os.Environ()
	if c.Drop != nil {
		cmd.Env = slices.DeleteFunc(cmd.Env, c.Drop)
	}
	cmd.Env = append(cmd.Env, c.Env...)
	cmd.Stdin = c.Stdin
	// A process group of its own: an interrupt ends what the program started too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace

	tail := &tail{}
	var logged io.Writer = tail
	if c.Log != nil {
		fmt.Fprintf(c.Log, "$ cd %s && %s %s\n", c.Dir, c.Name, strings.Join(c.Args, " "))
		logged = io.MultiWriter(c.Log, tail)
	}
	cmd.Stderr = logged
	cmd.Stdout = logged
	if out != nil {
		cmd.Stdout = out
	}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
			if cmd.Process != nil { // what did not heed the signal
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			}
		}
		return &Error{Cmd: c, Err: err, Tail: tail.String()}
	}
	return nil
}

// Error is a program that did not end well.
type Error struct {
	Cmd  Cmd
	Err  error
	Tail string // the last lines of its output
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s %s: %v", e.Cmd.Name, strings.Join(e.Cmd.Args, " "), e.Err)
	if e.Tail != "" {
		s += "\n    " + strings.ReplaceAll(e.Tail, "\n", "\n    ")
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// ExitCode returns the exit code in err's chain, or -1.
func ExitCode(err error) int {
	var x *exec.ExitError
	if errors.As(err, &x) {
		return x.ExitCode()
	}
	return -1
}

// tail keeps the last lines written to it.
type tail struct{ buf []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if len(t.buf) > 1<<16 {
		t.buf = append([]byte(nil), t.buf[len(t.buf)-1<<15:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	lines := strings.Split(strings.TrimRight(string(t.buf), "\n"), "\n")
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	return strings.Join(lines, "\n")
}
