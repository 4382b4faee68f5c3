package verbs

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"capacityv2.internal/scripts/cluster"
	"capacityv2.internal/scripts/run"
)

func TestCheckDriver(t *testing.T) {
	for driver, refuse := range map[string]bool{"": false, "reference": false, "hostpath": true} {
		if err := checkDriver(driver); run.IsRefusal(err) != refuse {
			t.Errorf("DRIVER=%s: %v, want a refusal: %t", driver, err, refuse)
		}
	}
	for mode, refuse := range map[cluster.Mode]bool{cluster.ModeFull: false, cluster.ModeControlPlane: true} {
		if err := checkDriverMode(mode); run.IsRefusal(err) != refuse {
			t.Errorf("in the mode %s: %v, want a refusal: %t", mode, err, refuse)
		}
	}
}

// TestDynamicPrograms runs the programs of the driver's image with nothing but their files.
func TestDynamicPrograms(t *testing.T) {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("needs root on Linux")
	}
	programs := []string{"mke2fs", "losetup"}
	files, err := dynamicPrograms(t.Context(), &run.Step{Log: io.Discard}, programs...)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for at, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, at)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, at), content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, program := range programs {
		cmd := exec.Command("/bin/"+program, "-V")
		cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Chroot: root}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", program, err, out)
		}
	}
}

// TestDriverManifests sees that a stock provisioner, which ends with flags that it does not know, gets none of ours.
func TestDriverManifests(t *testing.T) {
	dir := filepath.Join("..", "..", "test-e2e", "driver", "deploy")
	patched, err := driverManifests(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	stock, err := driverManifests(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(patched, "--capacity-confirmation") || strings.Contains(stock, "confirmation") || strings.Count(stock, "\n") != strings.Count(patched, "\n")-1 {
		t.Errorf("patched:\n%s\nstock:\n%s", patched, stock)
	}
	if _, err := driverManifests(t.TempDir(), true); err == nil {
		t.Error("manifests without the flag, want an error")
	}
}
