// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Scheduler is a kube-scheduler to run instead of the one of the cluster.
type Scheduler struct {
	// Program is its path.
	Program, Kubeconfig string
	// Gate is whether the feature gate is on.
	Gate bool
	// Elect is whether it leads only with a lease, which another one gets eight seconds after
	// the last sign of life.
	Elect bool
	// Log is the file to which it writes.
	Log string
	// Mark is a variable by which it is ended with the cluster, "" if it need not be.
	Mark string
}

// config is its configuration.
func (s Scheduler) config() string {
	return fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: %s
leaderElection:
  leaderElect: %t
  leaseDuration: 8s
  renewDeadline: 5s
  retryPeriod: 1s
`, s.Kubeconfig, s.Elect)
}

// Process is a running scheduler.
type Process struct {
	scheduler Scheduler
	dir       string

	mutex sync.Mutex // for what follows
	cmd   *exec.Cmd
	ended chan struct{}
}

// Start starts it, after the one that the cluster was started with has ended.
func (s Scheduler) Start(components string) (*Process, error) {
	before := Program{Path: filepath.Join(components, "kube-scheduler"), file: "environ"}
	if n, err := before.Count(); err != nil {
		return nil, err
	} else if n > 0 {
		if err := before.Signal(syscall.SIGKILL); err != nil {
			return nil, err
		}
		time.Sleep(time.Second)
	}
	return s.StartBeside()
}

// StartBeside starts it, whatever other schedulers run.
func (s Scheduler) StartBeside() (*Process, error) {
	dir, err := os.MkdirTemp("", "scheduler-")
	if err != nil {
		return nil, err
	}
	p := &Process{scheduler: s, dir: dir}
	if err = os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(s.config()), 0o600); err == nil {
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
	args := []string{"--config", filepath.Join(p.dir, "config.yaml"), "--v", "4", "--secure-port", "0",
		"--bind-address", "127.0.0.1", "--cert-dir", p.dir, "--authorization-always-allow-paths", "/metrics"}
	if p.scheduler.Gate {
		args = append(args, "--feature-gates", "CSIStorageCapacityV2=true")
	}
	p.cmd = exec.Command(p.scheduler.Program, args...)
	if p.scheduler.Mark != "" {
		p.cmd.Env = append(os.Environ(), p.scheduler.Mark)
	}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.ended = make(chan struct{})
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	return nil
}

// Revive starts it again if it has ended by itself, as one does that has lost its lease.
func (p *Process) Revive() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.revive()
}

func (p *Process) revive() error {
	select {
	case <-p.ended:
		return p.start()
	default:
		return nil
	}
}

// Signal sends a signal to it, after it was started again if it has ended.
func (p *Process) Signal(signal os.Signal) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if err := p.revive(); err != nil {
		return err
	}
	return p.cmd.Process.Signal(signal)
}

// Crash kills it and starts it again.
func (p *Process) Crash() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.kill()
	return p.start()
}

// End kills it.
func (p *Process) End() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.kill()
	os.RemoveAll(p.dir)
}

func (p *Process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}
