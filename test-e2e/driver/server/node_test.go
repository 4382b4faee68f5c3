// SPDX-License-Identifier: Apache-2.0

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
)

// TestNode uses a volume twice, and writes more than it has.
func TestNode(t *testing.T) {
	const size = 16 * mi
	for kind, capability := range map[string]*csi.VolumeCapability{"file system": writer[0], "device": device[0]} {
		t.Run(kind, func(t *testing.T) {
			p := newPlugin(t, "pool0=32Mi")
			id, err := p.create("v", capability, size)
			if err != nil {
				t.Fatal(err)
			}
			file, least := p.target, size
			if kind != "device" {
				file, least = filepath.Join(p.target, "file"), size*8/10 // ext4 needs some
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

// TestFullDisk has pods fill the disk of a pool, which is smaller than the pool says. What is offered is what the disk has.
// The volumes can be deleted, and then the room is there again.
func TestFullDisk(t *testing.T) {
	p := newPlugin(t, "pool0=1Gi")
	disk, image := filepath.Join(p.root, "node1/pools/pool0"), filepath.Join(p.root, "disk")
	for _, command := range []string{"mkdir -p " + disk, "truncate -s 64M " + image, "mke2fs -q -F -t ext4 -m 0 " + image, "mount -o loop " + image + " " + disk} {
		arguments := strings.Fields(command)
		if out, err := exec.Command(arguments[0], arguments[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
	}
	t.Cleanup(func() {
		if err := mount.New("").Unmount(disk); err != nil {
			t.Error(err)
		}
	})
	capacity := func() int64 {
		got, err := p.GetCapacity(t.Context(), &csi.GetCapacityRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return got.AvailableCapacity / mi
	}
	if got := capacity(); got < 40 || got > 64 {
		t.Errorf("%d Mi are offered on a disk of 64", got)
	}
	for range 2 {
		id, err := p.create("v", writer[0], 16*mi)
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
		if got := capacity(); got != 0 {
			t.Errorf("%d Mi are offered on a full disk", got)
		}
		p.unpublish(id)
		p.remove(id)
		if err := os.Remove(filepath.Join(disk, "other")); err != nil {
			t.Error(err)
		}
	}
	if _, err := p.create("large", writer[0], 100*mi); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("more than the disk has: %v", err)
	}
}

// TestOtherKind asks for a file system as a device.
func TestOtherKind(t *testing.T) {
	p := newPlugin(t, "pool0=32Mi")
	id, err := p.create("v", writer[0], 16*mi)
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

// TestPublish has calls that come too late, or after a driver that was killed.
func TestPublish(t *testing.T) {
	p := newPlugin(t, "pool0=32Mi")
	id, err := p.create("v", writer[0], 16*mi)
	if err != nil {
		t.Fatal(err)
	}
	p.publish(id, writer[0])
	if err := p.node.Mounter.Unmount(p.target); err != nil {
		t.Fatal(err)
	}
	publish := &csi.NodePublishVolumeRequest{VolumeId: id, StagingTargetPath: p.staging, TargetPath: p.target, VolumeCapability: writer[0], Readonly: true}
	late, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.NodePublishVolume(late, publish); status.Code(err) != codes.Unavailable {
		t.Errorf("after the call had ended: %v", err)
	}
	// Killed before what it had bound was read-only.
	staged := filepath.Join(p.staging, "volume")
	if err := p.node.Mounter.Mount(staged, p.target, "", []string{"bind"}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.NodePublishVolume(t.Context(), publish); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(p.target, "file"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("wrote to what is read-only: %v", err)
	}
	if err := errors.Join(p.node.Mounter.Unmount(p.target), p.node.Mounter.Unmount(staged)); err != nil {
		t.Error(err)
	}
	if _, err := p.NodePublishVolume(t.Context(), publish); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("the folder below the staging path: %v", err)
	}
	p.unpublish(id)
}
