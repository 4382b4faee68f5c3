// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"capacityv2.internal/test-e2e/driver/rebuild"
	"capacityv2.internal/test-e2e/driver/store"
)

// Create creates a volume with the size, kind and allowed pools that are wanted, or returns the one with the name, if it has
// at most limit bytes (0: any). What fails leaves a half copy, which Sweep removes.
func (n *Node) Create(ctx context.Context, name string, wanted store.Copy, limit int64) (store.Copy, error) {
	wanted.Handle, wanted.ID, wanted.State = HandleOf(name, n.Name), rebuild.FirstCopy, store.Half
	k, unlock, err := n.begin(ctx, wanted.Handle, false)
	if err != nil {
		return wanted, err
	}
	defer unlock()
	if k.PV == nil { // Another node may have a volume of this name, and two have no place in the API server.
		_, err = n.API.Client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			err = status.Errorf(codes.Aborted, "volume %s exists, and is not here", name)
		}
		if !apierrors.IsNotFound(err) {
			return wanted, withCode(err)
		}
		err = nil
	}
	c, has := k.find(wanted.ID)
	switch {
	case k.PV != nil && (k.Copy != c.ID || c.State == store.Half):
		return c, status.Errorf(codes.Aborted, "volume %s exists, and is not here", wanted.Handle)
	case c.State == store.Half:
		err = n.Store.Remove(ctx, c)
	case has && (c.Bytes < wanted.Bytes || limit > 0 && c.Bytes > limit || c.Block != wanted.Block || c.Pools != wanted.Pools):
		return c, status.Errorf(codes.AlreadyExists, "volume %s exists, with %d bytes in pool %s, which does not fit the request", c.Handle, c.Bytes, c.Pool)
	case has:
		return c, nil
	}
	if err == nil {
		c, err = n.Store.Reserve(ctx, wanted)
	}
	if err == nil {
		err = n.Store.Do(ctx, c, func(path string) error { return n.format(path, c) })
	}
	if err == nil {
		c.State = store.Ready
		err = n.Store.Put(c)
	}
	if err != nil {
		return c, withCode(err)
	}
	klog.FromContext(ctx).Info("Created volume", "volume", c.Handle, "pool", c.Pool, "bytes", c.Bytes)
	return c, nil
}

// Delete deletes a volume. It can be repeated. It fails on a node that does not own the volume: external-provisioner with
// --node-deployment asks every node to delete a volume without a node affinity, and takes the first OK for its end.
func (n *Node) Delete(ctx context.Context, handle string) error {
	k, unlock, err := n.begin(ctx, handle, true)
	if err != nil {
		return err
	}
	defer unlock()
	switch {
	case k.PV == nil && len(k.copies) == 0:
		return nil
	case k.PV == nil && makerOf(handle) != n.Name, k.PV != nil && !slices.Contains(k.Owners(), n.Name):
		return status.Errorf(codes.FailedPrecondition, "node %s does not own volume %s", n.Name, handle)
	}
	for _, c := range k.copies {
		isAttached, err := n.isAttached(ctx, c)
		if isAttached {
			err = status.Errorf(codes.FailedPrecondition, "volume %s is in use", handle)
		}
		if err == nil {
			err = n.Store.Remove(ctx, c)
		}
		if err != nil {
			return withCode(err)
		}
	}
	klog.FromContext(ctx).Info("Deleted volume", "volume", handle)
	return nil
}
