package cluster

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
	"strconv"
	"strings"
	"syscall"
	"time"

	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/workspace"
)

// startNode starts the node's first process in namespaces of its own and connects
// it to the host by a pair of links. All is recorded in st before the process
// goes on. The caller waits for the returned command.
func startNode(ctx context.Context, ws workspace.Workspace, n *node, spec *nodeSpec, st *state, log io.Writer) (*exec.Cmd, error) {
	save := func() error { return st.save(ws) }
	file, err := spec.write()
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	gate, open, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer open.Close()
	nodeLog, err := os.Create(spec.Log)
	if err != nil {
		return nil, err
	}
	defer nodeLog.Close()
	cmd := exec.Command(exe, InitVerb, file)
	cmd.Dir, cmd.Env = ws.Root, spec.ScriptEnv
	cmd.Stdout, cmd.Stderr = nodeLog, nodeLog
	cmd.ExtraFiles = []*os.File{gate}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Setsid: true}
	err = cmd.Start()
	gate.Close()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", n.Name, err)
	}
	p, err := newProcess(n.Name, cmd.Process.Pid, st.ID)
	if err != nil {
		return cmd, err
	}
	st.Processes = append(st.Processes, p)
	st.Link = "cap-" + st.ID
	if err := save(); err != nil {
		return cmd, err
	}
	for _, args := range []string{
		fmt.Sprintf("link add %s type veth peer name eth0 netns %d", st.Link, p.PID),
		fmt.Sprintf("address add %s/%d dev %s", n.Gateway, n.Address.Bits(), st.Link),
		fmt.Sprintf("link set %s up", st.Link),
	} {
		if err := (run.Cmd{Name: "ip", Args: strings.Fields(args), Log: log}).Run(ctx); err != nil {
			return cmd, err
		}
	}
	_, err = open.Write([]byte("go"))
	return cmd, err
}

// write writes the spec into the node's folder and returns the file.
func (s *nodeSpec) write() (string, error) {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return "", err
	}
	file := s.Node.path("spec.json")
	return file, os.WriteFile(file, b, 0o644)
}

// NodeInit is the first process of a node: it makes the node out of the empty
// namespaces that it was started in, runs the node's program, and ends with it.
// When it ends, the kernel ends all that is left of the node.
func NodeInit(ctx context.Context, specFile string) error {
	if os.Getpid() != 1 {
		return errors.New("this verb is the first process of a cluster's node, and not for use by hand")
	}
	// Closed without a word: who started us is gone, and knows nothing of us.
	if n, _ := os.NewFile(3, "gate").Read(make([]byte, 2)); n == 0 {
		return errors.New("not told to go on")
	}
	b, err := os.ReadFile(specFile)
	if err != nil {
		return err
	}
	spec := &nodeSpec{}
	if err := json.Unmarshal(b, spec); err != nil {
		return err
	}
	if err := spec.mounts(); err != nil {
		return err
	}
	if err := spec.network(ctx); err != nil {
		return err
	}
	containerd, err := spec.startContainerd(ctx)
	if err != nil {
		return err
	}
	script, err := spec.startScript()
	if err != nil {
		return err
	}
	go func() {
		<-ctx.Done()
		_ = syscall.Kill(script, syscall.SIGTERM)
	}()
	status := reap(script)
	_ = syscall.Kill(containerd, syscall.SIGTERM)
	for range 50 { // its database closes cleanly; if not in time, so be it
		if pid, err := syscall.Wait4(containerd, nil, syscall.WNOHANG, nil); err != nil || pid == containerd {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if ctx.Err() == nil {
		return fmt.Errorf("%s ended by itself: %s", spec.Script[0], status)
	}
	return nil
}

// reap collects every process that ends, as the first process has to, until pid
// does.
func reap(pid int) string {
	for {
		var ws syscall.WaitStatus
		got, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return err.Error()
		case got == pid && ws.Signaled():
			return "signal " + ws.Signal().String()
		case got == pid:
			return "exit code " + strconv.Itoa(ws.ExitStatus())
		}
	}
}

// mounts puts the node's folders and files over the host's. Nothing of it is
// seen outside.
func (s *nodeSpec) mounts() error {
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
		if !pathExists(m.To) {
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

func bind(m mount) error {
	if err := syscall.Mount(m.From, m.To, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s on %s: %w", m.From, m.To, err)
	}
	return nil
}

func (s *nodeSpec) network(ctx context.Context) error {
	if err := syscall.Sethostname([]byte(s.Node.Name)); err != nil {
		return err
	}
	for _, args := range []string{
		"link set lo up",
		fmt.Sprintf("address add %s dev eth0", s.Node.Address),
		"link set eth0 up",
		// Leads nowhere, but the API server looks for it.
		fmt.Sprintf("route add default via %s", s.Node.Gateway),
	} {
		if err := (run.Cmd{Name: "ip", Args: strings.Fields(args)}).Run(ctx); err != nil {
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
func (s *nodeSpec) startContainerd(ctx context.Context) (int, error) {
	snapshotter := s.snapshotter()
	config := s.Node.path("containerd.toml")
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(s.Containerd, snapshotterMark, snapshotter)), 0o644); err != nil {
		return 0, err
	}
	pid, err := start(s.ContainerdLog, s.Node.Dir, os.Environ(), filepath.Join(s.Bin, "containerd"), "--config", config)
	if err != nil {
		return 0, err
	}
	answers := waitUntil(ctx, time.Minute, func() bool {
		c, err := net.Dial("unix", containerdSocket)
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
			"--address", containerdSocket, "--namespace", "k8s.io", "images", "import", "--local", "--snapshotter", snapshotter, image}}
		if err := ctr.Run(ctx); err != nil {
			return pid, err
		}
	}
	return pid, nil
}

// snapshotter is overlayfs, where the node's file system can hold it (one that is
// an overlay itself cannot), else plain copies.
func (s *nodeSpec) snapshotter() string {
	dir := s.Node.path("overlay-probe")
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

func (s *nodeSpec) startScript() (int, error) {
	return start(s.ScriptLog, s.ScriptDir, s.ScriptEnv, s.Script[0], s.Script[1:]...)
}

// start starts a program that [reap] waits for.
func start(log, dir string, env []string, name string, args ...string) (int, error) {
	out, err := os.Create(log)
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
