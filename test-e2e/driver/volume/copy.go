package volume

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	continuity "github.com/containerd/continuity/fs"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"capacityv2.internal/test-e2e/driver/pool"
)

// copyData replaces the data of a copy by that of another one. Until the caller says
// that it is complete, it does not count. If the context ends, so does it, after the
// step that goes on.
func (m *Manager) copyData(ctx context.Context, from, to replica) error {
	source, err := from.store.DataDir(from.volume)
	if err != nil {
		return internal(err)
	}
	target, err := to.store.DataDir(to.volume)
	if err != nil {
		return internal(err)
	}
	before, err := checksum(source)
	if err != nil {
		return status.Errorf(codes.Unavailable, "the data of volume %s on node %s cannot be read: %v", from.volume.ID, from.store.Node, err)
	}
	_, err = to.store.Update(to.volume.ID, func(v *pool.Volume) error {
		if v.State == pool.Ready {
			v.State = pool.Behind
		}
		return nil
	})
	if err != nil {
		return internal(err)
	}
	if err := os.RemoveAll(target); err != nil {
		return internal(err)
	}
	m.Store.Step("before copying")
	if ctx.Err() != nil {
		return status.Errorf(codes.Aborted, "volume %s is not wanted here any more", from.volume.ID)
	}
	if err := continuity.CopyDir(target, source); err != nil {
		return internal(err)
	}
	if err := syncAll(target); err != nil {
		return internal(err)
	}
	m.Store.Step("after copying")
	if ctx.Err() != nil {
		return status.Errorf(codes.Aborted, "volume %s is not wanted here any more", from.volume.ID)
	}
	copied, err := checksum(target)
	if err != nil {
		return internal(err)
	}
	after, err := checksum(source)
	if err != nil {
		return internal(err)
	}
	if !bytes.Equal(before, after) {
		return status.Errorf(codes.FailedPrecondition, "volume %s is still being written on node %s", from.volume.ID, from.store.Node)
	}
	if !bytes.Equal(copied, after) {
		return status.Errorf(codes.DataLoss, "the copy of volume %s differs from the data on node %s", from.volume.ID, from.store.Node)
	}
	return nil
}

// syncAll makes a folder durable, with all that is in it.
func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// checksum returns one of all names, kinds, permissions, owners and contents in a
// folder.
func checksum(dir string) ([]byte, error) {
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t)
		fmt.Fprintf(sum, "%q %v %d %d %d\n", name, info.Mode(), stat.Uid, stat.Gid, stat.Rdev)
		switch {
		case info.Mode().IsRegular():
			return add(sum, path)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			fmt.Fprintf(sum, "%q\n", target)
			return err
		}
		return nil
	})
	return sum.Sum(nil), err
}

func add(sum io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	n, err := io.Copy(sum, file)
	fmt.Fprintf(sum, "%d\n", n) // so that the end of one is not the beginning of the next
	return err
}
