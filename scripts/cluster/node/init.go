// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"capacityv2.internal/scripts/cluster/machine"
	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/run"
)

// Start starts the node's first process in namespaces of its own: this program, with a
// verb and the spec. It waits at the returned gate until it is told to go on.
func (s *Spec) Start(dir, verb string) (cmd *exec.Cmd, gate *os.File, err error) {
	file := s.Node.Path("spec.json")
	if err := files.WriteJSON(file, s); err != nil {
		return nil, nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	wait, open, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer wait.Close()
	nodeLog, err := os.Create(s.Log)
	if err != nil {
		return nil, nil, errors.Join(err, open.Close())
	}
	defer nodeLog.Close()
	cmd = exec.Command(exe, verb, file)
	cmd.Dir, cmd.Env = dir, s.Env
	cmd.Stdout, cmd.Stderr = nodeLog, nodeLog
	cmd.ExtraFiles = []*os.File{wait}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: machine.Namespaces, Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start %s: %w", s.Node.Name, err), open.Close())
	}
	return cmd, open, nil
}

// waitForStart waits for the word to go on. Where the gate was closed without it, who
// started us is gone, and knows nothing of us.
func waitForStart(gate io.Reader) error {
	if _, err := io.ReadFull(gate, make([]byte, len(StartSignal))); err != nil {
		return fmt.Errorf("not told to go on: %w", err)
	}
	return nil
}

// Init is the first process of a node: it makes the node out of the empty
// namespaces that it was started in, runs the node's programs, and ends with the
// first of them that is not started again. When it ends, the kernel ends all that is left of the node.
func Init(ctx context.Context, specFile string) error {
	if os.Getpid() != 1 {
		return errors.New("this verb is the first process of a cluster's node, and not for use by hand")
	}
	syscall.CloseOnExec(3)
	gate := os.NewFile(3, "gate")
	if err := waitForStart(gate); err != nil {
		return err
	}
	spec := &Spec{}
	if err := files.ReadJSON(specFile, spec); err != nil {
		return err
	}
	if err := spec.mounts(); err != nil {
		return err
	}
	if err := spec.network(); err != nil {
		return err
	}
	containerd, err := spec.startContainerd(ctx)
	if err != nil {
		return err
	}
	if spec.Joins {
		if err := waitForStart(gate); err != nil {
			return err
		}
	}
	ended := make(chan ending)
	go reap(ended)
	err = spec.runPrograms(ctx, ended)
	_ = syscall.Kill(containerd, syscall.SIGTERM)
	for timeout := time.After(5 * time.Second); ; { // its database closes cleanly; if not in time, so be it
		select {
		case e := <-ended:
			if e.pid != containerd {
				continue
			}
		case <-timeout:
		}
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
}

// shortRun is how long a program has to run to be started again when it ends.
var shortRun = 5 * time.Second

// running is a program that was started.
type running struct {
	Program
	started time.Time
}

// runPrograms runs the programs until one ends, or ctx does, and ends the others. One that
// restarts is started again, as a service manager does, unless it has hardly run. The error
// tells which one ended.
func (s *Spec) runPrograms(ctx context.Context, ended <-chan ending) (err error) {
	programs := map[int]running{}
	for _, p := range s.Programs {
		pid, err := p.start(s.Env, os.O_TRUNC)
		if err != nil {
			return err // the end of this process is that of the others
		}
		programs[pid] = running{p, time.Now()}
	}
	terminate := ctx.Done()
	for len(programs) > 0 {
		select {
		case <-terminate:
			terminate = nil
			signal(programs)
		case e := <-ended:
			p, ours := programs[e.pid]
			if delete(programs, e.pid); !ours || err != nil {
				continue
			}
			err = fmt.Errorf("%s ended by itself: %s", p.Args[0], e.how)
			if ctx.Err() == nil && p.Restarts && time.Since(p.started) > shortRun {
				fmt.Printf("%v; it is started again\n", err)
				var pid int
				if pid, err = p.start(s.Env, os.O_APPEND); err == nil {
					programs[pid] = running{p.Program, time.Now()}
					continue
				}
			}
			signal(programs)
		}
	}
	return err
}

// signal asks programs to end.
func signal(programs map[int]running) {
	for pid := range programs {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
}

// ending is how a process ended.
type ending struct {
	pid int
	how string
}

// reap collects every process that ends, as the first process has to.
func reap(ended chan<- ending) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return // there are none, nor anybody to start one
		case ws.Signaled():
			ended <- ending{pid, "signal " + ws.Signal().String()}
		default:
			ended <- ending{pid, "exit code " + strconv.Itoa(ws.ExitStatus())}
		}
	}
}

// mounts puts the node's folders and files over the host's. Nothing of it is
// seen outside.
func (s *Spec) mounts() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	for _, m := range s.Folders {
		if err := bind(m); err != nil {
			return err
		}
	}
	for _, m := range [][2]string{{"tmpfs", "/run"}, {"proc", "/proc"}} {
		if err := syscall.Mount(m[0], m[1], m[0], syscall.MS_NOSUID|syscall.MS_NODEV, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m[1], err)
		}
	}
	for _, m := range s.Files {
		if !machine.Exists(m.To) {
			continue // a kernel without that setting
		}
		if err := bind(m); err != nil {
			return err
		}
	}
	// Volumes that a driver mounts in its pod have to be seen by the kubelet.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil {
		return fmt.Errorf("shared mounts: %w", err)
	}
	return nil
}

func bind(m Mount) error {
	if err := syscall.Mount(m.From, m.To, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s on %s: %w", m.From, m.To, err)
	}
	return nil
}

func (s *Spec) network() error {
	if err := syscall.Sethostname([]byte(s.Node.Name)); err != nil {
		return err
	}
	for _, i := range s.interfaces() {
		if err := i.Set(); err != nil {
			return err
		}
	}
	for _, f := range []string{"ip_forward", "conf/all/route_localnet"} {
		if err := os.WriteFile(filepath.Join("/proc/sys/net/ipv4", f), []byte("1"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// startContainerd returns its PID when it answers and has the images.
func (s *Spec) startContainerd(ctx context.Context) (int, error) {
	snapshotter := s.snapshotter()
	if err := s.writeConfig("containerd.toml", snapshotter, "containerd.toml"); err != nil {
		return 0, err
	}
	program := Program{Args: []string{filepath.Join(s.Bin, "containerd"), "--config", s.Node.Path("containerd.toml")}, Dir: s.Node.Dir, Log: s.ContainerdLog}
	pid, err := program.start(s.Env, os.O_TRUNC)
	if err != nil {
		return 0, err
	}
	answers := machine.WaitUntil(ctx, time.Minute, func() bool {
		c, err := net.Dial("unix", ContainerdSocket)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	if !answers {
		return pid, errors.New("containerd does not answer, see " + s.ContainerdLog)
	}
	for _, image := range s.Images {
		ctr := run.Cmd{Name: filepath.Join(s.Bin, "ctr"), Log: os.Stdout, Args: []string{
			"--address", ContainerdSocket, "--namespace", "k8s.io", "images", "import", "--local", "--snapshotter", snapshotter, image}}
		if err := ctr.Run(ctx); err != nil {
			return pid, err
		}
	}
	return pid, nil
}

// snapshotter is overlayfs, where the node's file system can hold it (one that is
// an overlay itself cannot), else plain copies.
func (s *Spec) snapshotter() string {
	dir := s.Node.Path("overlay-probe")
	defer os.RemoveAll(dir)
	for _, d := range []string{"lower", "upper", "work", "merged"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return "native"
		}
	}
	merged := filepath.Join(dir, "merged")
	options := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", dir)
	if err := syscall.Mount("overlay", merged, "overlay", 0, options); err != nil {
		return "native"
	}
	_ = syscall.Unmount(merged, 0)
	return "overlayfs"
}

// start starts the program, for [reap] to wait for. logFlag is os.O_TRUNC or os.O_APPEND.
func (p Program) start(env []string, logFlag int) (int, error) {
	out, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|logFlag, 0o644)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	cmd := exec.Command(p.Args[0], p.Args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.Dir, env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}
