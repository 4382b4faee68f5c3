// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

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

// copying is a copy that goes on, or has ended: then err is what the next call gets.
type copying struct {
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
}

// rebuild begins a copy, or goes on with one that a driver has left that was killed.
func (n *Node) rebuild(ctx context.Context, s *store.Store, k *known) error {
	if err := n.join(k.handle); err != nil {
		return err
	}
	for _, c := range k.copies {
		if c.ID != k.Copy && rebuild.IsWanted(k.Volume, n.Name, c.ID) {
			return n.startCopy(ctx, s, *k, c)
		}
	}
	size := k.PV.Spec.Capacity[corev1.ResourceStorage]
	c := store.Copy{
		Handle: k.handle, ID: strings.ToLower(rand.Text()), From: k.Copy, State: store.Copying, Bytes: size.Value(),
		Block: k.PV.Spec.VolumeMode != nil && *k.PV.Spec.VolumeMode == corev1.PersistentVolumeBlock,
	}
	if pools := k.PV.Spec.CSI.VolumeAttributes[PoolsKey]; pools != "" {
		c.Pools = strings.Split(pools, ",")
	}
	// Before anything changes for it. The other node may hang.
	if err := bounded(ctx, func() error {
		file, err := n.open(k, c)
		if err != nil {
			return err
		}
		return file.Close()
	}); err != nil {
		return fmt.Errorf("%w: %w", store.ErrAway, err)
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

// open opens the copy that counts, on the node that is listed.
func (n *Node) open(k *known, c store.Copy) (*os.File, error) {
	if len(k.Homes) == 0 {
		return nil, fmt.Errorf("no node has volume %s by its list", k.handle)
	}
	return n.peer(k.Homes[0].Name).Open(k.handle, c.From, c.Bytes)
}

func (n *Node) peer(node string) store.Peer { return store.Peer(filepath.Join(n.Peers, node)) }

// join returns Aborted if a copy goes on, and the error of one that has ended, once.
func (n *Node) join(handle string) error {
	n.lock.Lock()
	defer n.lock.Unlock()
	job := n.copies[handle]
	if job == nil {
		return nil
	}
	select {
	case <-job.ended:
		delete(n.copies, handle)
		return job.err
	default:
		return stillCopied(handle)
	}
}

func stillCopied(handle string) error {
	return status.Errorf(codes.Aborted, "volume %s is being copied", handle)
}

// cancel ends a copy that goes on. If it does not end before the call, the error is Aborted.
func (n *Node) cancel(ctx context.Context, handle string) error {
	n.lock.Lock()
	job := n.copies[handle]
	n.lock.Unlock()
	if job == nil {
		return nil
	}
	job.cancel()
	select {
	case <-job.ended:
		n.lock.Lock()
		defer n.lock.Unlock()
		delete(n.copies, handle)
		return nil
	case <-ctx.Done():
		return stillCopied(handle)
	}
}

// startCopy makes the copy in the background.
func (n *Node) startCopy(ctx context.Context, s *store.Store, k known, c store.Copy) error {
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	job := &copying{cancel: cancel, ended: make(chan struct{})}
	n.lock.Lock()
	n.copies[k.handle] = job
	n.lock.Unlock()
	go func() {
		defer close(job.ended)
		defer cancel()
		select {
		case n.slots <- struct{}{}:
			defer func() { <-n.slots }()
			job.err = withCode(n.copy(background, s, k, c))
		case <-background.Done():
		}
		if job.err != nil && background.Err() == nil { // The pod may go elsewhere, so the room is given back.
			klog.FromContext(ctx).Error(job.err, "Copy failed", "volume", k.handle, "copy", c.ID)
			if err := n.giveUp(background, s, k.handle); err != nil { // Sweep looks again
				klog.FromContext(ctx).Error(err, "Giving a copy up failed, will try again", "volume", k.handle)
			}
		}
	}()
	return stillCopied(k.handle)
}

// giveUp takes begun away, and then gives the room back.
func (n *Node) giveUp(ctx context.Context, s *store.Store, handle string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		k, err := n.look(ctx, s, handle)
		if err == nil && !k.IsUnconfirmed {
			if err = n.patch(ctx, &k, n.API.Cancel(k.Volume, n.Name)); err == nil {
				err = n.tidy(ctx, s, &k)
			}
		}
		return err
	})
}

// copy makes the data of a copy, and says that it is complete.
func (n *Node) copy(ctx context.Context, s *store.Store, k known, c store.Copy) error {
	if c.State == store.Copying {
		from, err := n.open(&k, c)
		if err != nil {
			return fmt.Errorf("%w: %w", store.ErrAway, err)
		}
		defer from.Close()
		if err := s.Do(ctx, c, func(path string) error { return n.allocate(path, c) }); err != nil {
			return err
		}
		n.step("copy data")
		if err := copyData(ctx, from, s.Path(c), store.Sectors(c.Bytes)); err != nil {
			return err
		}
		if err := s.Open(ctx, c); err != nil { // still the same disk
			return err
		}
		c.State = store.Ready
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
	offset := int64(0)
	for err == nil {
		if err = ctx.Err(); err != nil {
			break
		}
		var length int
		length, err = io.ReadFull(from, buffer)
		if data := buffer[:length]; !bytes.Equal(data, zeros[:length]) {
			if _, writeErr := to.WriteAt(data, offset); writeErr != nil {
				err = writeErr
			}
		}
		offset += int64(length)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		if err = nil; offset != size {
			err = fmt.Errorf("read %d bytes; expected %d", offset, size)
		}
	}
	return errors.Join(err, to.Sync(), to.Close())
}

// bounded does something that may hang, and returns when the context ends.
func bounded(ctx context.Context, do func() error) error {
	result := make(chan error, 1)
	go func() { result <- do() }()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
