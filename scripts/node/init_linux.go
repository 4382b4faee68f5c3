package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"capacityv2.internal/scripts/files"
	"capacityv2.internal/scripts/machine"
	"capacityv2.internal/scripts/run"
)

// Start starts the node's first process in namespaces of its own: this program, with a
// verb and the spec. It waits at the returned gate until it is told to go on.
func (s *Spec) Start(dir, verb string) (cmd *exec.Cmd, gate *os.File, err error) {
	file, err := s.write()
	if err != nil {
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

// write writes the spec into the node's folder and returns the file.
func (s *Spec) write() (string, error) {
	file := s.Node.Path("spec.json")
	return file, files.WriteJSON(file, s)
}

// told waits for the word to go on. Where the gate was closed without it, who
// started us is gone, and knows nothing of us.
func told(gate io.Reader) error {
	if _, err := io.ReadFull(gate, make([]byte, len(GoOn))); err != nil {
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
	if err := told(gate); err != nil {
		return err
	}
	b, err := os.ReadFile(specFile)
	if err != nil {
		return err
	}
	spec := &Spec{}
	if err := json.Unmarshal(b, spec); err != nil {
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
		if err := told(gate); err != nil {
			return err
		}
	}
	err = spec.runPrograms(ctx)
	_ = syscall.Kill(containerd, syscall.SIGTERM)
	for range 50 { // its database closes cleanly; if not in time, so be it
		if pid, err := syscall.Wait4(containerd, nil, syscall.WNOHANG, nil); err != nil || pid == containerd {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// shortRun is how long a program has to run to be started again when it ends.
var shortRun = 5 * time.Second

// runPrograms runs the programs until one ends, or ctx does, and ends the others. One that
// restarts is started again, as a service manager does, unless it has hardly run. The error
// tells which one ended.
func (s *Spec) runPrograms(ctx context.Context) error {
	var mutex sync.Mutex
	var pids []int
	terminate := func() {
		mutex.Lock()
		defer mutex.Unlock()
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
	}
	started := make([]time.Time, len(s.Programs))
	for i, p := range s.Programs {
		pid, err := start(os.O_TRUNC, p.Log, p.Dir, s.Env, p.Args[0], p.Args[1:]...)
		if err != nil {
			terminate()
			return err
		}
		pids, started[i] = append(pids, pid), time.Now()
	}
	go func() {
		<-ctx.Done()
		terminate()
	}()
	for {
		i, status := reap(pids)
		p := s.Programs[i]
		err := fmt.Errorf("%s ended by itself: %s", p.Args[0], status)
		if ctx.Err() == nil && p.Restarts && time.Since(started[i]) > shortRun {
			fmt.Printf("%v; it is started again\n", err)
			var pid int
			if pid, err = start(os.O_APPEND, p.Log, p.Dir, s.Env, p.Args[0], p.Args[1:]...); err == nil {
				mutex.Lock()
				pids[i], started[i] = pid, time.Now()
				mutex.Unlock()
				if ctx.Err() != nil {
					terminate() // again, because this one was not there
				}
				continue
			}
		}
		terminate()
		for left := slices.Delete(slices.Clone(pids), i, i+1); len(left) > 0; {
			i, _ := reap(left)
			left = slices.Delete(left, i, i+1)
		}
		return err
	}
}

// reap collects every process that ends, as the first process has to, until one of
// pids does. It returns its index, and how it ended.
func reap(pids []int) (int, string) {
	for {
		var ws syscall.WaitStatus
		got, err := syscall.Wait4(-1, &ws, 0, nil)
		i := slices.Index(pids, got)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, err.Error()
		case i >= 0 && ws.Signaled():
			return i, "signal " + ws.Signal().String()
		case i >= 0:
			return i, "exit code " + strconv.Itoa(ws.ExitStatus())
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
	config := s.Node.Path("containerd.toml")
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(s.Containerd, snapshotterMark, snapshotter)), 0o644); err != nil {
		return 0, err
	}
	pid, err := start(os.O_TRUNC, s.ContainerdLog, s.Node.Dir, os.Environ(), filepath.Join(s.Bin, "containerd"), "--config", config)
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

// start starts a program that [reap] waits for. logFlag is os.O_TRUNC or os.O_APPEND.
func start(logFlag int, log, dir string, env []string, name string, args ...string) (int, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|logFlag, 0o644)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	path, err := exec.LookPath(name)
	if err != nil {
		return 0, err
	}
	return syscall.ForkExec(path, append([]string{name}, args...), &syscall.ProcAttr{
		Dir: dir, Env: env, Files: []uintptr{uintptr(syscall.Stdin), out.Fd(), out.Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
}
