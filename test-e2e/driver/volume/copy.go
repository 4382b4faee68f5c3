// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"capacityv2.internal/test-e2e/driver/rebuild"
	"capacityv2.internal/test-e2e/driver/store"
)

// PoolsKey is the attribute of a volume with the names of the pools that are allowed, with commas between them. Empty: all.
const PoolsKey = "pools"

// patience is how long the folder of a node may take to open a file, and the API server to hear that a copy is complete.
const patience = 10 * time.Second

// copying is a copy that goes on.
type copying struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

// rebuild begins a copy, or goes on with one that a driver has left that was killed, or that has failed, if its file is there.
func (n *Node) rebuild(ctx context.Context, k *known) (err error) {
	stillCopied := stillCopied(k.handle)
	if _, isCopying := n.copies.Load(k.handle); isCopying {
		return stillCopied
	}
	c, isBegun := k.find(k.Begun.ID)
	isBegun = isBegun && k.isWanted(n, c) && n.Store.See(ctx, c) == nil
	var from *os.File
	if !isBegun || c.State == store.Half {
		if from, err = n.open(ctx, k); err != nil { // before anything changes for it
			return err
		}
	}
	if !isBegun {
		c, err = n.reserve(ctx, k)
	}
	if err != nil {
		return errors.Join(err, from.Close())
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	job := copying{cancel, make(chan struct{})}
	n.copies.Store(k.handle, job)
	go func() {
		defer close(job.ended)
		defer n.copies.Delete(k.handle)
		defer cancel()
		defer from.Close()
		err := n.Slots.Acquire(background, 1)
		if err == nil {
			defer n.Slots.Release(1)
			err = n.copy(background, k, c, from)
		}
		if err != nil && background.Err() == nil {
			klog.FromContext(ctx).Error(err, "Copy failed, will try again when it is asked for", "volume", k.handle, "copy", c.ID)
		}
	}()
	return stillCopied
}

// reserve takes the room for a copy, and says that it is begun.
func (n *Node) reserve(ctx context.Context, k *known) (store.Copy, error) {
	c := store.Copy{
		Handle: k.handle, ID: strings.ToLower(rand.Text()), State: store.Half, Bytes: k.PV.Spec.Capacity.Storage().Value(),
		Block: ptr.Deref(k.PV.Spec.VolumeMode, "") == corev1.PersistentVolumeBlock, Pools: k.PV.Spec.CSI.VolumeAttributes[PoolsKey],
	}
	c, err := n.Store.Reserve(ctx, c)
	if err != nil {
		return c, err
	}
	if err = n.patch(ctx, k, n.API.Begin(n.Name, c.ID)); err != nil { // It may have been written. Nothing is completed then.
		err = errors.Join(err, n.Store.Remove(ctx, c))
	}
	return c, err
}

// isWanted tells whether a copy that does not count yet is still wanted.
func (k *known) isWanted(n *Node, c store.Copy) bool {
	return rebuild.IsWanted(k.Volume, n.Name, c.ID) && (k.IsUnconfirmed || !isEnded(k.PV))
}

// open opens the copy that counts, on another node that has the volume.
func (n *Node) open(ctx context.Context, k *known) (*os.File, error) {
	err := fmt.Errorf("no node has volume %s by its affinity or list", k.handle)
	for _, node := range k.Owners() {
		var file *os.File
		err = n.do(ctx, node, func() (err error) {
			file, err = store.Peer(filepath.Join(n.Peers, node)).Open(k.handle, k.Copy, k.PV.Spec.Capacity.Storage().Value())
			return err
		})
		if err == nil {
			return file, nil
		}
		err = fmt.Errorf("node %s: %w", node, err)
	}
	return nil, fmt.Errorf("%w: %w", store.ErrAway, err)
}

func stillCopied(handle string) error {
	return status.Errorf(codes.Aborted, "volume %s is being copied", handle)
}

// cancel ends a copy that goes on. If it does not end before the call, the error is Aborted.
func (n *Node) cancel(ctx context.Context, handle string) error {
	job, isCopying := n.copies.Load(handle)
	if !isCopying {
		return nil
	}
	job.(copying).cancel()
	select {
	case <-job.(copying).ended:
		return nil
	case <-ctx.Done():
		return stillCopied(handle)
	}
}

// copy makes the data of a copy, and says that it is complete.
func (n *Node) copy(ctx context.Context, k *known, c store.Copy, from *os.File) error {
	if c.State == store.Half {
		n.Store.Fault.Step("copy data")
		if err := copyData(ctx, from, n.Store.Path(c), c.Bytes); err != nil {
			return err
		}
		if err := n.Store.See(ctx, c); err != nil { // still the same disk
			return err
		}
		c.State = store.Copied
		if err := n.Store.Put(c); err != nil {
			return err
		}
		klog.FromContext(ctx).Info("Copied volume", "volume", k.handle, "copy", c.ID, "pool", c.Pool, "bytes", c.Bytes)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		k, err := n.look(ctx, k.handle)
		if err == nil && !k.isWanted(n, c) {
			err = status.Errorf(codes.Aborted, "volume %s is not wanted here any more", k.handle)
		}
		if err != nil {
			return err
		}
		return n.patch(ctx, k, n.API.Complete(k.Volume, n.Name, c.ID))
	})
}

// copyData copies a file of a size into one that is allocated, and has zeros or what an earlier attempt has copied, until the
// context ends. Both may hang.
func copyData(ctx context.Context, from io.Reader, path string, size int64) error {
	to, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	buffer, zeros := make([]byte, 1<<20), make([]byte, 1<<20)
	for at := int64(0); at < size && err == nil; at += int64(len(buffer)) {
		buffer = buffer[:min(int64(len(buffer)), size-at)]
		if _, err = io.ReadFull(from, buffer); err == nil && !bytes.Equal(buffer, zeros[:len(buffer)]) {
			_, err = to.WriteAt(buffer, at)
		}
		err = cmp.Or(err, ctx.Err())
	}
	return errors.Join(err, to.Sync(), to.Close())
}
