// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"capacityv2.internal/test-e2e/driver/rebuild"
	"capacityv2.internal/test-e2e/driver/store"
)

// Create creates a volume with the size, kind and allowed pools that are wanted, or returns the one with the name, if it has
// at most limit bytes (0: any).
func (n *Node) Create(ctx context.Context, name string, wanted store.Copy, limit int64) (store.Copy, error) {
	wanted.Handle, wanted.ID, wanted.State = HandleOf(name, n.Name), rebuild.FirstCopy, store.Half
	s, done, err := n.beginHere(wanted.Handle)
	if err != nil {
		return wanted, err
	}
	defer done()
	k, err := n.look(ctx, s, wanted.Handle)
	exists := err == nil
	if err != nil && !apierrors.IsNotFound(err) {
		return wanted, withCode(err)
	}
	own := slices.IndexFunc(k.copies, func(c store.Copy) bool { return c.ID == wanted.ID })
	switch {
	case exists && (own < 0 || k.Copy != wanted.ID || k.copies[own].State == store.Half):
		return wanted, status.Errorf(codes.Aborted, "volume %s exists, and is not here", wanted.Handle)
	case own < 0:
		wanted, err = s.Reserve(ctx, wanted)
	default:
		c := k.copies[own]
		if c.Bytes < wanted.Bytes || limit > 0 && c.Bytes > limit || c.Block != wanted.Block || !slices.Equal(c.Pools, wanted.Pools) {
			return c, status.Errorf(codes.AlreadyExists, "volume %s exists, with %d bytes in pool %s, which does not fit the request", c.Handle, c.Bytes, c.Pool)
		}
		if wanted = c; c.State == store.Ready {
			return c, nil
		}
	}
	if err != nil {
		return wanted, withCode(err)
	}
	err = s.Do(ctx, wanted, func(path string) error { return n.makeImage(path, wanted) })
	if err == nil {
		wanted.State = store.Ready
		err = s.Put(wanted)
	}
	if err != nil { // Whoever asked may not ask again.
		return wanted, withCode(errors.Join(err, s.Remove(context.WithoutCancel(ctx), wanted)))
	}
	klog.FromContext(ctx).Info("Created volume", "volume", wanted.Handle, "pool", wanted.Pool, "bytes", wanted.Bytes)
	return wanted, nil
}

// Delete deletes a volume. It can be repeated. It fails on a node that does not own the volume: external-provisioner with
// --node-deployment asks every node to delete a volume without a node affinity, and takes the first OK for its end.
func (n *Node) Delete(ctx context.Context, handle string) error {
	s, done, err := n.beginHere(handle)
	if err != nil {
		return err
	}
	defer done()
	k, err := n.look(ctx, s, handle)
	isGone := apierrors.IsNotFound(err)
	switch {
	case err != nil && !isGone:
		return withCode(err)
	case isGone && len(k.copies) == 0:
		return nil
	case isGone && makerOf(handle) != n.Name, !isGone && !slices.Contains(k.Owners(), n.Name):
		return status.Errorf(codes.FailedPrecondition, "node %s does not own volume %s", n.Name, handle)
	}
	if err := n.cancel(ctx, handle); err != nil {
		return err
	}
	for _, c := range k.copies {
		if isAttached, err := n.isAttached(ctx, s, c); err != nil || isAttached {
			return withCode(errors.Join(err, status.Errorf(codes.FailedPrecondition, "volume %s is in use", handle)))
		}
		if err := s.Remove(ctx, c); err != nil {
			return withCode(err)
		}
	}
	klog.FromContext(ctx).Info("Deleted volume", "volume", handle)
	return nil
}
