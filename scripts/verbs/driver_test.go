package verbs

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"capacityv2.internal/scripts/cluster"
	"capacityv2.internal/scripts/progress"
)

func TestCheckDriver(t *testing.T) {
	for driver, refuse := range map[string]bool{"": false, "reference": false, "hostpath": true} {
		if err := checkDriver(driver); progress.IsRefusal(err) != refuse {
			t.Errorf("DRIVER=%s: %v, want a refusal: %t", driver, err, refuse)
		}
	}
	for mode, refuse := range map[cluster.Mode]bool{cluster.ModeFull: false, cluster.ModeControlPlane: true} {
		if err := checkDriverMode(mode); progress.IsRefusal(err) != refuse {
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
	files, err := dynamicPrograms(t.Context(), &progress.Step{Log: io.Discard}, programs...)
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
