package machine

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// TestUnmountBelow runs with mounts of its own.
func TestUnmountBelow(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	runtime.LockOSThread() // and never unlocked: the thread ends with the test
	if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
		t.Skip("no mounts of its own: ", err)
	}
	mount := func(dir string) string {
		t.Helper()
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("none", dir, "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	dir := mount(filepath.Join(t.TempDir(), "kubelet"))
	beside := mount(dir + "2")
	pod := mount(filepath.Join(dir, "pods", "1"))
	mount(filepath.Join(pod, "v"))
	if err := UnmountBelow(dir); err != nil {
		t.Error(err)
	}
	for _, d := range []string{dir, beside} {
		if err := syscall.Unmount(d, 0); err != nil {
			t.Errorf("%s is not mounted any more, or something below it still is: %v", d, err)
		}
	}
}
