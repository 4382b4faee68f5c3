package server

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/mount-utils"
	utilexec "k8s.io/utils/exec"

	"capacityv2.internal/test-e2e/driver/volume"
)

// TestNode stages, publishes, fills and expands a volume with each backing, with real
// mounts.
func TestNode(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can mount")
	}
	mounter := mount.New("")
	for name, backing := range map[string]volume.Backing{
		"folders": volume.Folders{Mounter: mounter},
		"images":  volume.Images{Mounter: mount.NewSafeFormatAndMount(mounter, utilexec.New())},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			t.Cleanup(func() { removeAll(t, mounter, root) })
			m := newManager(t, root, "node1", backing, 10)
			c, n := &Controller{Volumes: m}, &Node{Volumes: m, Mounter: mounter}
			ctx := t.Context()
			staging, target := filepath.Join(root, "staging"), filepath.Join(root, "target")

			created, err := c.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: "v", VolumeCapabilities: writer, CapacityRange: &csi.CapacityRange{RequiredBytes: 16 << 20}})
			if err != nil {
				t.Fatal(err)
			}
			id := created.Volume.VolumeId
			publish := &csi.NodePublishVolumeRequest{VolumeId: id, StagingTargetPath: staging, TargetPath: target, VolumeCapability: writer[0]}
			if _, err := n.NodePublishVolume(ctx, publish); status.Code(err) != codes.FailedPrecondition {
				t.Errorf("published before it was staged: %v", err)
			}
			for range 2 {
				if _, err := n.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: staging, VolumeCapability: writer[0]}); err != nil {
					t.Fatal(err)
				}
				if _, err := n.NodePublishVolume(ctx, publish); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(target, "file"), make([]byte, 1<<20), 0o600); err != nil {
				t.Fatal(err)
			}
			usage := func() *csi.VolumeUsage {
				t.Helper()
				r, err := n.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: target})
				if err != nil {
					t.Fatal(err)
				}
				return r.Usage[0]
			}
			if u := usage(); u.Total != 16<<20 || u.Used < 1<<20 || u.Used > 8<<20 || u.Available > 15<<20 || u.Available < 1<<20 {
				t.Errorf("usage: %v", u)
			}
			if name == "images" {
				err := os.WriteFile(filepath.Join(target, "large"), make([]byte, 17<<20), 0o600)
				if err == nil || !strings.Contains(err.Error(), "no space left") {
					t.Errorf("more than the volume has: %v", err)
				}
				if err := os.Remove(filepath.Join(target, "large")); err != nil {
					t.Error(err)
				}
			}

			// Expand, while it is published.
			size := &csi.CapacityRange{RequiredBytes: 64 << 20}
			if _, err := c.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: size}); err != nil {
				t.Fatal(err)
			}
			r, err := n.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{VolumeId: id, VolumePath: target, CapacityRange: size})
			if err != nil && strings.Contains(err.Error(), "Permission denied to resize filesystem") {
				t.Log("without CAP_SYS_RESOURCE, ext4 cannot grow while it is mounted; not tested")
			} else {
				if err != nil || r.CapacityBytes != 64<<20 {
					t.Errorf("expanded: %v, %v", r, err)
				}
				if u := usage(); u.Total != 64<<20 || u.Available < 40<<20 {
					t.Errorf("usage after it was expanded: %v", u)
				}
				if err := os.WriteFile(filepath.Join(target, "large"), make([]byte, 17<<20), 0o600); err != nil {
					t.Errorf("after it was expanded: %v", err)
				}
			}

			readonly := filepath.Join(root, "readonly")
			publish.TargetPath, publish.Readonly = readonly, true
			if _, err := n.NodePublishVolume(ctx, publish); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(readonly, "x"), nil, 0o600); err == nil {
				t.Error("read-only volume was written")
			}
			for range 2 {
				for _, path := range []string{target, readonly} {
					if _, err := n.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: path}); err != nil {
						t.Fatal(err)
					}
					if _, err := os.Stat(path); !os.IsNotExist(err) {
						t.Errorf("%s is still there: %v", path, err)
					}
				}
				if _, err := n.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: staging}); err != nil {
					t.Fatal(err)
				}
			}
			if out, err := exec.Command("losetup", "--list", "--noheadings", "--output", "BACK-FILE").Output(); err != nil || strings.Contains(string(out), root) {
				t.Errorf("loop devices are left: %s, %v", out, err)
			}
			if _, err := c.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id}); err != nil {
				t.Error(err)
			}
		})
	}
}

// failingMounter mounts nothing, or only says so.
type failingMounter struct {
	*mount.FakeMounter
	mounts bool
}

func (m failingMounter) Mount(source, target, fstype string, options []string) error {
	if m.mounts {
		if err := m.FakeMounter.Mount(source, target, fstype, options); err != nil {
			return err
		}
	}
	return errors.New("mount failed")
}

// TestStageFailed checks that a volume that could not be mounted is not staged: the
// kubelet does not call NodeUnstageVolume after that.
func TestStageFailed(t *testing.T) {
	for name, test := range map[string]struct {
		mounts bool
		code   codes.Code
	}{
		"not mounted": {code: codes.OK},
		"mounted":     {mounts: true, code: codes.FailedPrecondition},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			mounter := failingMounter{mount.NewFakeMounter(nil), test.mounts}
			m := newManager(t, root, "node1", volume.Folders{Mounter: mounter}, 10)
			c, n := &Controller{Volumes: m}, &Node{Volumes: m, Mounter: mounter}
			created, err := c.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "v", VolumeCapabilities: writer})
			if err != nil {
				t.Fatal(err)
			}
			id := created.Volume.VolumeId
			stage := &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: filepath.Join(root, "staging"), VolumeCapability: writer[0]}
			if _, err := n.NodeStageVolume(t.Context(), stage); status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "mount failed") {
				t.Fatalf("staged: %v", err)
			}
			if _, err := c.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: id}); status.Code(err) != test.code {
				t.Errorf("deleted: %v; expected %s", err, test.code)
			}
		})
	}
}
