// SPDX-License-Identifier: Apache-2.0

package driverguide

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"k8s.io/kubernetes/test/utils/ktesting"
)

// TestPublishTwice publishes and unpublishes a volume twice, as a kubelet does that was restarted or
// got no answer in time. The data of the pod stays, and nothing is left of the volume.
func TestPublishTwice(t *testing.T) {
	ownMounts(t)
	tCtx := ktesting.Init(t)
	k := newKubelet(tCtx)
	k.create("v")
	k.publish("v")
	file := filepath.Join(k.target, "file")
	tCtx.ExpectNoError(os.WriteFile(file, []byte("data"), 0o600))
	k.publish("v")
	if got, err := os.ReadFile(file); string(got) != "data" {
		t.Errorf("after the second call, the file of the pod has %q, %v", got, err)
	}
	k.unpublish("v")
	k.unpublish("v")
}

// TestUnpublishAll unpublishes a volume that an older driver has mounted twice.
func TestUnpublishAll(t *testing.T) {
	ownMounts(t)
	tCtx := ktesting.Init(t)
	k := newKubelet(tCtx)
	k.create("v")
	k.publish("v")
	tCtx.ExpectNoError(syscall.Mount("tmpfs", k.target, "tmpfs", 0, ""), "mount once more")
	k.unpublish("v")
}

// ownMounts gives the test, and the processes that it starts, a mount namespace of their own.
func ownMounts(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can mount")
	}
	runtime.LockOSThread() // for good: the thread ends with the test
	if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
		t.Skip(err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
}

// kubelet makes the calls of one, for a pod.
type kubelet struct {
	ktesting.TContext
	csi.ControllerClient
	csi.NodeClient
	target string
}

func newKubelet(tCtx ktesting.TContext) *kubelet {
	tCtx.Helper()
	target := filepath.Join(tCtx.TempDir(), "mount")
	tCtx.Cleanup(func() {
		for syscall.Unmount(target, 0) == nil {
		}
	})
	socket, _ := startDriver(tCtx, "NODE_NAME="+node)
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	tCtx.ExpectNoError(err, "connect to the driver")
	tCtx.Cleanup(func() { connection.Close() })
	return &kubelet{TContext: tCtx, ControllerClient: csi.NewControllerClient(connection), NodeClient: csi.NewNodeClient(connection), target: target}
}

func (k *kubelet) create(volume string) {
	k.Helper()
	_, err := k.CreateVolume(k, &csi.CreateVolumeRequest{Name: volume, CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 20}, VolumeCapabilities: []*csi.VolumeCapability{fileSystem}})
	k.ExpectNoError(err, "create the volume")
}

func (k *kubelet) publish(volume string) {
	k.Helper()
	_, err := k.NodePublishVolume(k, &csi.NodePublishVolumeRequest{VolumeId: volume, TargetPath: k.target, VolumeCapability: fileSystem})
	k.ExpectNoError(err, "publish the volume")
}

// unpublish expects that the target is gone, which a mount point cannot be.
func (k *kubelet) unpublish(volume string) {
	k.Helper()
	_, err := k.NodeUnpublishVolume(k, &csi.NodeUnpublishVolumeRequest{VolumeId: volume, TargetPath: k.target})
	k.ExpectNoError(err, "unpublish the volume")
	if _, err := os.Lstat(k.target); !errors.Is(err, fs.ErrNotExist) {
		k.Errorf("the target is left after the call: %v", err)
	}
}
