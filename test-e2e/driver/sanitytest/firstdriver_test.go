// SPDX-License-Identifier: Apache-2.0

package sanitytest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
)

// TestFirstDriver runs csi-sanity on the driver of docs/tutorials/first-driver.md.
func TestFirstDriver(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can mount")
	}
	root, err := os.MkdirTemp("", "csi") // not t.TempDir, whose path is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	const source = "testdata/my-driver/main.go" // a link, because of other files than those of its module, go test sees no change
	if _, err := os.Stat(source); err != nil {
		t.Fatal(err)
	}
	program, socket := filepath.Join(root, "my-driver"), filepath.Join(root, "csi.sock")
	build := exec.Command("go", "build", "-o", program, source)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	driver := exec.Command(program, socket, filepath.Join(root, "registration.sock"))
	driver.Env = append(os.Environ(), "NODE_NAME=node1")
	driver.Stderr = t.Output()
	if err := driver.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = driver.Process.Kill()
		_ = driver.Wait()
	})
	config := sanity.NewTestConfig()
	config.Address, config.TestVolumeSize = socket, 16<<20
	config.TargetPath, config.StagingPath = filepath.Join(root, "target"), filepath.Join(root, "staging")
	Run(t, 20, map[string]sanity.TestConfig{"first driver": config})
}
