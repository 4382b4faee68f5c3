package measure

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Scheduler is a kube-scheduler to run instead of the one of the cluster.
type Scheduler struct {
	// Program is its path.
	Program, Kubeconfig string
	// Policy is that of the reservation. With "" the feature gate is off.
	Policy string
	// Log is the file to which it writes.
	Log string
}

// config is its configuration.
func (s Scheduler) config() string {
	config := fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: %s
leaderElection:
  leaderElect: false
`, s.Kubeconfig)
	if s.Policy == "" {
		return config
	}
	return config + fmt.Sprintf(`profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: VolumeBinding
    args:
      kind: VolumeBindingArgs
      apiVersion: kubescheduler.config.k8s.io/v1
      capacityReservation:
        policy: %s
`, s.Policy)
}

// Process is a running scheduler.
type Process struct {
	scheduler Scheduler
	dir       string
	cmd       *exec.Cmd
}

// Start starts it, after the one that the cluster was started with has ended.
func (s Scheduler) Start(components string) (*Process, error) {
	killed, err := KillAll(filepath.Join(components, "kube-scheduler"), "")
	if err != nil {
		return nil, err
	}
	if killed > 0 {
		time.Sleep(time.Second)
	}
	dir, err := os.MkdirTemp("", "scheduler-")
	if err != nil {
		return nil, err
	}
	p := &Process{scheduler: s, dir: dir}
	err = os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(s.config()), 0o600)
	if err == nil {
		err = p.start()
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return p, nil
}

func (p *Process) start() error {
	log, err := os.OpenFile(p.scheduler.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{"--config", filepath.Join(p.dir, "config.yaml"), "--secure-port", "0", "--v", "4"}
	if p.scheduler.Policy != "" {
		args = append(args, "--feature-gates", "CSIStorageCapacityV2=true")
	}
	p.cmd = exec.Command(p.scheduler.Program, args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	return p.cmd.Start()
}

// Crash kills it and starts it again.
func (p *Process) Crash() error {
	p.kill()
	return p.start()
}

// End kills it.
func (p *Process) End() {
	p.kill()
	os.RemoveAll(p.dir)
}

func (p *Process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// CrashContainers kills the containers that run a program, in the control group of the
// cluster. The kubelet starts them again.
func CrashContainers(program, group string) error {
	// In a container, the path is the one of its image.
	killed, err := KillAll("/"+program, group)
	if err == nil && killed == 0 {
		err = fmt.Errorf("no process of %s was found", program)
	}
	return err
}

// KillAll ends the processes of a program whose control group contains a text, as a
// crash does, and returns how many there were.
func KillAll(program, group string) (int, error) {
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return 0, err
	}
	killed := 0
	for _, link := range links {
		groups, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cgroup"))
		if exe, err := os.Readlink(link); err != nil || exe != program || !strings.Contains(string(groups), group) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(link, "/")[2])
		if err != nil {
			return killed, err
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return killed, err
		}
		killed++
	}
	return killed, nil
}
