package machine

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestRemoveKubernetesRules runs in a network of its own.
func TestRemoveKubernetesRules(t *testing.T) {
	if _, err := exec.LookPath("iptables"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and iptables")
	}
	runtime.LockOSThread() // and never unlocked: the thread ends with the test
	if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		t.Skip("no network of its own: ", err)
	}
	filter := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("iptables", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("iptables %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	expect := func(want bool) {
		t.Helper()
		if got, err := HasKubernetesRules(); err != nil || got != want {
			t.Errorf("there are rules of Kubernetes: %t, error %v, want %t", got, err, want)
		}
	}
	for _, line := range []string{"-N USER", "-A PREROUTING -j USER"} {
		filter(append([]string{"-t", "nat"}, strings.Fields(line)...)...)
	}
	expect(false)
	before := filter("-t", "nat", "-S")
	for _, line := range []string{
		"-N KUBE-SERVICES", "-N KUBE-MARK-MASQ", "-A KUBE-SERVICES -j KUBE-MARK-MASQ",
		"-I PREROUTING -m comment --comment kubernetes-portals -j KUBE-SERVICES", "-A PREROUTING -s 10.0.0.1 -j KUBE-SERVICES",
	} {
		filter(append([]string{"-t", "nat"}, strings.Fields(line)...)...)
	}
	filter("-N", "KUBE-FIREWALL")
	expect(true)
	if err := RemoveKubernetesRules(); err != nil {
		t.Error(err)
	}
	expect(false)
	if after := filter("-t", "nat", "-S"); after != before {
		t.Errorf("rules afterwards:\n%s\nwant those of before:\n%s", after, before)
	}
}
