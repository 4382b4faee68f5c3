package chain

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// scheduler is a variant of the scheduler under test.
type scheduler struct {
	// Policy is that of the reservation. With "" the feature gate is off.
	Policy string
}

func (s scheduler) String() string {
	if s.Policy == "" {
		return "gate off"
	}
	return s.Policy
}

// config is the configuration of the variant.
func (s scheduler) config() string {
	config := fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: %s
leaderElection:
  leaderElect: false
`, os.Getenv("KUBECONFIG"))
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

// process is a running scheduler.
type process struct {
	variant scheduler
	dir     string
	cmd     *exec.Cmd
}

// startScheduler starts a variant, and ends it with the test.
func startScheduler(t *testing.T, s scheduler) *process {
	t.Helper()
	endClusterScheduler(t)
	p := &process{variant: s, dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(p.dir, "config.yaml"), []byte(s.config()), 0o600); err != nil {
		t.Fatal(err)
	}
	p.start(t)
	t.Cleanup(p.kill)
	return p
}

func (p *process) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(os.Getenv("CHAIN_LOGS"), "scheduler-"+strings.ReplaceAll(t.Name(), "/", "-")+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p.cmd = exec.Command(filepath.Join(os.Getenv("COMPONENTS"), "kube-scheduler"), "--config", filepath.Join(p.dir, "config.yaml"),
		"--feature-gates", "CSIStorageCapacityV2="+strconv.FormatBool(p.variant.Policy != ""), "--secure-port", "0", "--v", "4")
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

// kill ends the scheduler as a crash does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// endClusterScheduler ends the scheduler that the cluster was started with.
func endClusterScheduler(t *testing.T) {
	t.Helper()
	if killAll(t, filepath.Join(os.Getenv("COMPONENTS"), "kube-scheduler"), "") > 0 {
		time.Sleep(time.Second)
	}
}

// killAll ends the processes of a program whose control group contains a text, as a
// crash does, and returns how many there were.
func killAll(t *testing.T, program, group string) int {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, link := range links {
		groups, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cgroup"))
		if exe, err := os.Readlink(link); err != nil || exe != program || !strings.Contains(string(groups), group) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(link, "/")[2])
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		killed++
	}
	return killed
}
