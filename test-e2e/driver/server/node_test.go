package server

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/mount-utils"
	utilexec "k8s.io/utils/exec"

	"capacityv2.internal/test-e2e/driver/pool"
	"capacityv2.internal/test-e2e/driver/volume"
)

// backings are those that this machine can have.
func backings(t *testing.T) map[string]volume.Backing {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can mount")
	}
	all := map[string]volume.Backing{"folders": volume.Folders{}}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Logf("without images: this machine has no loop devices: %v", err)
	} else {
		all["images"] = volume.Images{Exec: utilexec.New()}
	}
	return all
}

// plugin is the driver of a node, with real mounts.
type plugin struct {
	*testing.T
	*Controller
	*Node
	staging, target string
}

func newPlugin(t *testing.T, m *volume.Manager, root string) *plugin {
	t.Cleanup(func() { unmountAll(t, m.Mounter, root) })
	return &plugin{T: t, Controller: &Controller{Volumes: m}, Node: &Node{Volumes: m}, staging: filepath.Join(root, "staging"), target: filepath.Join(root, "target")}
}

func (p *plugin) create(name string, capability *csi.VolumeCapability, bytes int64) (id string, err error) {
	r, err := p.CreateVolume(p.Context(), &csi.CreateVolumeRequest{Name: name, VolumeCapabilities: []*csi.VolumeCapability{capability}, CapacityRange: &csi.CapacityRange{RequiredBytes: bytes}})
	return r.GetVolume().GetVolumeId(), err
}

// publish does what a kubelet does for a pod, twice.
func (p *plugin) publish(id string, capability *csi.VolumeCapability) {
	p.Helper()
	publish := &csi.NodePublishVolumeRequest{VolumeId: id, StagingTargetPath: p.staging, TargetPath: p.target, VolumeCapability: capability}
	if _, err := p.NodePublishVolume(p.Context(), publish); status.Code(err) != codes.FailedPrecondition {
		p.Errorf("published before it was staged: %v", err)
	}
	for range 2 {
		if _, err := p.NodeStageVolume(p.Context(), &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: p.staging, VolumeCapability: capability}); err != nil {
			p.Fatal(err)
		}
		if _, err := p.NodePublishVolume(p.Context(), publish); err != nil {
			p.Fatal(err)
		}
	}
}

func (p *plugin) unpublish(id string) {
	p.Helper()
	for range 2 {
		if _, err := p.NodeUnpublishVolume(p.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: p.target}); err != nil {
			p.Fatal(err)
		}
		if _, err := p.NodeUnstageVolume(p.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: p.staging}); err != nil {
			p.Fatal(err)
		}
	}
}

func (p *plugin) remove(id string) {
	p.Helper()
	if _, err := p.DeleteVolume(p.Context(), &csi.DeleteVolumeRequest{VolumeId: id}); err != nil {
		p.Error(err)
	}
}

// TestNode uses a volume of each kind with each backing, and then again.
func TestNode(t *testing.T) {
	for name, backing := range backings(t) {
		for kind, capability := range map[string]*csi.VolumeCapability{"file system": writer[0], "device": device[0]} {
			if kind == "device" && !backing.HasBlock() {
				continue
			}
			t.Run(name+", "+kind, func(t *testing.T) {
				root := t.TempDir()
				p := newPlugin(t, newManager(t, root, "node1", backing, mount.New(""), 10), root)
				id, err := p.create("v", capability, 16<<20)
				if err != nil {
					t.Fatal(err)
				}
				file := p.target
				if kind != "device" {
					file = filepath.Join(p.target, "file")
				}
				p.publish(id, capability)
				if err := os.WriteFile(file, []byte("data"), 0o600); err != nil {
					t.Fatal(err)
				}
				p.unpublish(id)
				p.publish(id, capability)
				data := make([]byte, 4)
				if f, err := os.Open(file); err != nil {
					t.Error(err)
				} else if _, err := f.Read(data); err != nil || string(data) != "data" || f.Close() != nil {
					t.Errorf("read %q, %v", data, err)
				}
				p.unpublish(id)
				p.remove(id)
			})
		}
	}
}

// TestSize writes more than a volume has.
func TestSize(t *testing.T) {
	images := backings(t)["images"]
	if images == nil {
		t.Skip("folders have no size")
	}
	const size = 16 << 20
	for kind, capability := range map[string]*csi.VolumeCapability{"file system": writer[0], "device": device[0]} {
		t.Run(kind, func(t *testing.T) {
			root := t.TempDir()
			p := newPlugin(t, newManager(t, root, "node1", images, mount.New(""), 10), root)
			id, err := p.create("v", capability, size)
			if err != nil {
				t.Fatal(err)
			}
			p.publish(id, capability)
			file, least := p.target, size
			if kind != "device" {
				file, least = filepath.Join(p.target, "file"), size*8/10 // ext4 needs some
			}
			if written, err := fill(file, 2*size); !errors.Is(err, unix.ENOSPC) || written > size || written < least {
				t.Errorf("wrote %d bytes of %d: %v", written, size, err)
			}
			p.unpublish(id)
			p.remove(id)
		})
	}
}

// fill writes to a file until there is no room, and makes durable what there is.
func fill(path string, limit int) (written int, err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	for chunk := make([]byte, 64<<10); written < limit && err == nil; {
		var n int
		n, err = file.Write(chunk)
		written += n
	}
	return written, errors.Join(err, file.Sync())
}

// TestFullDisk has pods fill the disk of a pool, which is smaller than the pool says. The
// volumes can be deleted, and then the room is there again.
func TestFullDisk(t *testing.T) {
	for name, backing := range backings(t) {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			disk, image := filepath.Join(root, "pools/node1/pool0"), filepath.Join(root, "disk")
			if err := os.MkdirAll(disk, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, command := range []string{"truncate -s 64M " + image, "mke2fs -q -F -t ext4 -m 0 " + image, "mount -o loop " + image + " " + disk} {
				arguments := strings.Fields(command)
				if out, err := exec.Command(arguments[0], arguments[1:]...).CombinedOutput(); err != nil {
					t.Fatalf("%s: %v: %s", command, err, out)
				}
			}
			mounter := mount.New("")
			t.Cleanup(func() {
				if err := mounter.Unmount(disk); err != nil {
					t.Error(err)
				}
			})
			p := newPlugin(t, newManager(t, root, "node1", backing, mounter, 1), filepath.Join(root, "kubelet"))
			for range 2 {
				id, err := p.create("v", writer[0], 16<<20)
				if err != nil {
					t.Fatal(err)
				}
				p.publish(id, writer[0])
				if _, err := fill(filepath.Join(p.target, "file"), 1<<30); !errors.Is(err, unix.ENOSPC) {
					t.Errorf("filled: %v", err)
				}
				if written, err := fill(filepath.Join(disk, "other"), 1<<30); !errors.Is(err, unix.ENOSPC) {
					t.Errorf("wrote %d bytes beside it: %v", written, err)
				}
				p.unpublish(id)
				p.remove(id)
				if err := os.Remove(filepath.Join(disk, "other")); err != nil {
					t.Error(err)
				}
			}
			if !backing.HasBlock() {
				return
			}
			if _, err := p.create("large", writer[0], 100<<20); status.Code(err) != codes.ResourceExhausted {
				t.Errorf("more than the disk has: %v", err)
			}
			if rooms, err := p.Controller.Volumes.Store.Rooms(nil); err != nil || rooms[0].AvailableBytes != gi {
				t.Errorf("left: %v, %v", rooms, err)
			}
		})
	}
}

// TestOtherKind asks for a file system as a device.
func TestOtherKind(t *testing.T) {
	images := backings(t)["images"]
	if images == nil {
		t.Skip("folders are of one kind")
	}
	root := t.TempDir()
	p := newPlugin(t, newManager(t, root, "node1", images, mount.New(""), 10), root)
	id, err := p.create("v", writer[0], 16<<20)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: p.staging, VolumeCapability: device[0]}); err != nil {
		t.Fatal(err) // of no consequence: what is published is looked at
	}
	_, err = p.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{VolumeId: id, StagingTargetPath: p.staging, TargetPath: p.target, VolumeCapability: device[0]})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("published: %v", err)
	}
	p.unpublish(id)
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

// stuckBacking fails to detach some times.
type stuckBacking struct {
	volume.Folders
	times *int
}

func (b stuckBacking) Detach(pool.Volume) (inUse bool, err error) {
	if *b.times--; *b.times >= 0 {
		return true, errors.New("detach failed")
	}
	return false, nil
}

// TestStageFailed checks that a volume that could not be mounted is not staged after a final code: the
// kubelet does not call NodeUnstageVolume then.
func TestStageFailed(t *testing.T) {
	for name, test := range map[string]struct {
		fails, mounts bool // of the mounter
		detach        int  // how often that fails
		code          codes.Code
		isStaged      bool
	}{
		"not mounted":          {fails: true, code: codes.Internal},
		"mounted":              {fails: true, mounts: true, code: codes.Internal},
		"not detached at once": {detach: 1, code: codes.Internal},
		"not detached":         {detach: 2, code: codes.Aborted, isStaged: true},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			var mounter mount.Interface = mount.NewFakeMounter(nil)
			if test.fails {
				mounter = failingMounter{mount.NewFakeMounter(nil), test.mounts}
			}
			m := newManager(t, root, "node1", stuckBacking{times: &test.detach}, mounter, 10)
			v, err := m.Create(t.Context(), pool.Volume{Name: "v", CapacityBytes: gi}, 0)
			if err != nil {
				t.Fatal(err)
			}
			stage := &csi.NodeStageVolumeRequest{VolumeId: v.ID, StagingTargetPath: filepath.Join(root, "staging"), VolumeCapability: writer[0]}
			if _, err := (&Node{Volumes: m}).NodeStageVolume(t.Context(), stage); status.Code(err) != test.code || !strings.Contains(err.Error(), "failed") {
				t.Errorf("staged: %v; expected %s", err, test.code)
			}
			if test.isStaged {
				if err := m.Delete(t.Context(), v.ID); status.Code(err) != codes.FailedPrecondition {
					t.Errorf("deleted: %v", err)
				}
				if err := m.Release(t.Context(), v.ID, stage.GetStagingTargetPath()); err != nil {
					t.Error(err)
				}
			}
			if err := m.Delete(t.Context(), v.ID); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestStageFailedAgain fails for a volume that was staged before, as after a restart of the kubelet. Pods may use it.
func TestStageFailedAgain(t *testing.T) {
	root, times := t.TempDir(), 0
	m := newManager(t, root, "node1", stuckBacking{times: &times}, mount.NewFakeMounter(nil), 10)
	v, err := m.Create(t.Context(), pool.Volume{Name: "v", CapacityBytes: gi}, 0)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "staging")
	for _, code := range []codes.Code{codes.OK, codes.Aborted} {
		if err := m.Acquire(t.Context(), v.ID, path); status.Code(err) != code {
			t.Errorf("staged: %v; expected %s", err, code)
		}
		times = 1
		if mounted, err := m.Mounter.IsMountPoint(path); err != nil || !mounted {
			t.Errorf("mounted: %t, %v", mounted, err)
		}
	}
}

// TestPublish has calls that come too late, or after a driver that was killed.
func TestPublish(t *testing.T) {
	for name, backing := range backings(t) {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			p := newPlugin(t, newManager(t, root, "node1", backing, mount.New(""), 10), root)
			id, err := p.create("v", writer[0], 16<<20)
			if err != nil {
				t.Fatal(err)
			}
			p.publish(id, writer[0])
			if err := p.Node.Volumes.Mounter.Unmount(p.target); err != nil {
				t.Fatal(err)
			}
			publish := &csi.NodePublishVolumeRequest{VolumeId: id, StagingTargetPath: p.staging, TargetPath: p.target, VolumeCapability: writer[0], Readonly: true}
			late, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := p.NodePublishVolume(late, publish); status.Code(err) != codes.Canceled {
				t.Errorf("after the call had ended: %v", err)
			}
			// Killed before what it had bound was read-only.
			if err := p.Node.Volumes.Mounter.Mount(p.staging, p.target, "", []string{"bind"}); err != nil {
				t.Fatal(err)
			}
			if _, err := p.NodePublishVolume(t.Context(), publish); err != nil {
				t.Error(err)
			}
			if err := os.WriteFile(filepath.Join(p.target, "file"), nil, 0o600); !errors.Is(err, unix.EROFS) {
				t.Errorf("wrote to what is read-only: %v", err)
			}
			if err := errors.Join(p.Node.Volumes.Mounter.Unmount(p.target), p.Node.Volumes.Mounter.Unmount(p.staging)); err != nil {
				t.Error(err)
			}
			if _, err := p.NodePublishVolume(t.Context(), publish); status.Code(err) != codes.FailedPrecondition {
				t.Errorf("the folder below the staging path: %v", err)
			}
			p.unpublish(id)
		})
	}
}
