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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"

	"capacityv2.internal/test-e2e/driver/rebuild"
	"capacityv2.internal/test-e2e/driver/store"
)

// PoolsKey is the attribute of a volume with the names of the pools that are allowed, with commas between them. Empty: all.
const PoolsKey = "pools"

// patience is how long another node may take to open a file.
const patience = 10 * time.Second

// copying is a copy that goes on.
type copying struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

// rebuild begins a copy, or goes on with one that a driver has left that was killed.
func (n *Node) rebuild(ctx context.Context, s *store.Store, k *known) error {
	if _, isCopying := n.copies.Load(k.handle); isCopying {
		return stillCopied(k.handle)
	}
	for _, c := range k.copies {
		if rebuild.IsWanted(k.Volume, n.Name, c.ID) {
			return n.startCopy(ctx, s, *k, c)
		}
	}
	size := k.PV.Spec.Capacity[corev1.ResourceStorage]
	c := store.Copy{
		Handle: k.handle, ID: strings.ToLower(rand.Text()), State: store.Half, Bytes: size.Value(),
		Block: k.PV.Spec.VolumeMode != nil && *k.PV.Spec.VolumeMode == corev1.PersistentVolumeBlock,
	}
	if pools := k.PV.Spec.CSI.VolumeAttributes[PoolsKey]; pools != "" {
		c.Pools = strings.Split(pools, ",")
	}
	if err := n.see(ctx, k); err != nil { // before anything changes for it
		return err
	}
	c, err := s.Reserve(ctx, c)
	if err == nil {
		if err = n.patch(ctx, k, n.API.Begin(n.Name, c.ID)); err != nil && isRefused(err) {
			err = errors.Join(err, s.Remove(ctx, c)) // else it may have been written, and Sweep looks
		}
	}
	if err != nil {
		return err
	}
	return n.startCopy(ctx, s, *k, c)
}

// isRefused tells that a write had no effect.
func isRefused(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err)
}

// open opens the copy that counts, on another node that has the volume.
func (n *Node) open(ctx context.Context, k *known) (file *os.File, err error) {
	size := k.PV.Spec.Capacity[corev1.ResourceStorage]
	err = fmt.Errorf("no node has volume %s by its affinity or list", k.handle)
	for _, node := range k.Owners() {
		if file, err = n.openAt(ctx, node, k.handle, k.Copy, size.Value()); err == nil {
			return file, nil
		}
	}
	return nil, fmt.Errorf("%w: %w", store.ErrAway, err)
}

// openAt opens a copy on a node, which may hang: then one looks at it, and nobody waits long.
func (n *Node) openAt(ctx context.Context, node, handle, id string, bytes int64) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	place, _ := n.looks.LoadOrStore(node, make(chan struct{}, 1))
	select {
	case place.(chan struct{}) <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("node %s hangs: %w", node, ctx.Err())
	}
	type result struct {
		file *os.File
		err  error
	}
	ended := make(chan result, 1)
	go func() {
		defer func() { <-place.(chan struct{}) }()
		file, err := store.Peer(filepath.Join(n.Peers, node)).Open(handle, id, bytes)
		ended <- result{file, err}
	}()
	select {
	case r := <-ended:
		return r.file, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("node %s hangs: %w", node, ctx.Err())
	}
}

// see returns an error if the copy that counts cannot be seen now.
func (n *Node) see(ctx context.Context, k *known) error {
	file, err := n.open(ctx, k)
	if err != nil {
		return err
	}
	return file.Close()
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

// startCopy makes the copy in the background.
func (n *Node) startCopy(ctx context.Context, s *store.Store, k known, c store.Copy) error {
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	job := copying{cancel, make(chan struct{})}
	n.copies.Store(k.handle, job)
	go func() {
		defer close(job.ended)
		defer n.copies.Delete(k.handle)
		defer cancel()
		select {
		case n.slots <- struct{}{}:
			defer func() { <-n.slots }()
		case <-background.Done():
			return
		}
		err := n.copy(background, s, k, c)
		if err == nil || background.Err() != nil {
			return
		}
		// The pod may go elsewhere, so the room is given back.
		klog.FromContext(ctx).Error(err, "Copy failed, will try again when it is asked for", "volume", k.handle, "copy", c.ID)
		if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			k, err := n.look(background, s, k.handle)
			if err == nil && !k.IsUnconfirmed {
				err = n.giveUp(background, s, &k)
			}
			return err
		}); err != nil { // Sweep looks again.
			klog.FromContext(ctx).Error(err, "Giving a copy up failed, will try again", "volume", k.handle)
		}
	}()
	return stillCopied(k.handle)
}

// giveUp takes begun away, and then gives the room back. What cannot be seen now, Sweep looks at again.
func (n *Node) giveUp(ctx context.Context, s *store.Store, k *known) error {
	err := n.patch(ctx, k, n.API.Cancel(k.Volume, n.Name))
	if err == nil {
		err = n.tidy(ctx, s, k)
	}
	if errors.Is(err, store.ErrAway) {
		return nil
	}
	return err
}

// copy makes the data of a copy, and says that it is complete.
func (n *Node) copy(ctx context.Context, s *store.Store, k known, c store.Copy) error {
	if c.State == store.Half {
		from, err := n.open(ctx, &k)
		if err != nil {
			return err
		}
		defer from.Close()
		if err := s.Do(ctx, c, func(path string) error { return n.allocate(path, c) }); err != nil {
			return err
		}
		n.Fault.Step("copy data")
		if err := copyData(ctx, from, s.Path(c), store.Sectors(c.Bytes)); err != nil {
			return err
		}
		if err := s.Open(ctx, c); err != nil { // still the same disk
			return err
		}
		c.State = store.Copied
		if err := s.Put(c); err != nil {
			return err
		}
		klog.FromContext(ctx).Info("Copied volume", "volume", k.handle, "copy", c.ID, "pool", c.Pool, "bytes", c.Bytes)
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		k, err := n.look(ctx, s, k.handle)
		if err == nil && !rebuild.IsWanted(k.Volume, n.Name, c.ID) {
			err = status.Errorf(codes.Aborted, "volume %s is not wanted here any more", k.handle)
		}
		if err != nil {
			return err
		}
		return n.patch(ctx, &k, n.API.Complete(k.Volume, n.Name, c.ID))
	})
}

// copyData copies a file of a size into one that is allocated and empty, until the context ends. Both may hang.
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
