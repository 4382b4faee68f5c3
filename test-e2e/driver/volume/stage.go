// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/apimachinery/pkg/util/wait"

	"capacityv2.internal/test-e2e/driver/rebuild"
	"capacityv2.internal/test-e2e/driver/store"
)

// Stage mounts a volume at a path, with options. If the data is elsewhere, a copy is begun, and the error is Aborted until it
// is complete and the affinity names this node. What is staged is not asked about again.
func (n *Node) Stage(ctx context.Context, handle, path string, options ...string) error {
	k, unlock, err := n.begin(ctx, handle, false)
	if err != nil {
		return err
	}
	defer unlock()
	if k.PV == nil {
		return status.Errorf(codes.NotFound, "volume %s has no PersistentVolume", handle)
	}
	if n.isStaged(k, path) {
		return nil
	}
	c, has := k.current()
	cluster, err := n.API.Cluster(ctx, k.Volume, n.Name)
	if err != nil {
		return withCode(err)
	}
	switch answer := rebuild.Serve(k.Volume, cluster, n.Name, has); answer {
	case rebuild.ServeCopy:
		return withCode(n.serve(ctx, k, c, path, options))
	case rebuild.Rebuild:
		return withCode(n.rebuild(ctx, k))
	case rebuild.InUse:
		return status.Errorf(codes.FailedPrecondition, "volume %s is in use on node %s, which may write to it", handle, k.InUse.Node)
	case rebuild.Lost:
		return status.Errorf(codes.Unavailable, "volume %s is on node %s by its affinity, and copy %s is not here", handle, n.Name, k.Copy)
	default:
		return status.Errorf(codes.Aborted, "volume %s: %s; it is on %v, and was sent to %q", handle, answer, k.Owners(), cluster.Selected)
	}
}

// isStaged tells whether the copy that counts is mounted at a staging path, and others know. Something else may be: what a
// node has staged stays there when it was taken for one that is off.
func (n *Node) isStaged(k *known, path string) bool {
	c, has := k.current()
	return has && k.InUse == rebuild.Mark{Node: n.Name, ID: c.ID} && isAt(c, target(path))
}

// serve mounts the copy that counts, in the call: nothing is mounted after NodeUnstageVolume.
func (n *Node) serve(ctx context.Context, k *known, c store.Copy, path string, options []string) error {
	err := n.Store.See(ctx, c)
	if err == nil && (c.State != store.Ready || !c.RemoveAt.IsZero()) { // before it is written to
		c.State, c.RemoveAt = store.Ready, time.Time{}
		err = n.Store.Put(c)
	}
	if err == nil {
		err = n.patch(ctx, k, n.API.Use(k.Volume, n.Name))
	}
	if err != nil {
		return err
	}
	if err = n.Store.Do(ctx, c, func(data string) error { return n.mount(c, data, path, options) }); err == nil {
		return nil
	}
	if undoErr := n.unstage(ctx, k, path); undoErr != nil {
		return status.Errorf(codes.Aborted, "mount volume %s: %v; undo that: %v", k.handle, err, undoErr)
	}
	return fmt.Errorf("mount volume %s: %w", k.handle, err)
}

// Unstage ends a copy that goes on, unmounts the volume, and takes the flags of this node away. After that, nothing goes on.
func (n *Node) Unstage(ctx context.Context, handle, path string) error {
	k, unlock, err := n.begin(ctx, handle, true)
	if err != nil {
		return err
	}
	defer unlock()
	return withCode(n.unstage(ctx, k, path))
}

// unstage goes on where an earlier one has ended. The flags go before the copies that they speak of.
func (n *Node) unstage(ctx context.Context, k *known, path string) error {
	for _, c := range k.copies {
		if err := n.Store.Wait(ctx, c); err != nil { // Nothing is mounted later.
			return err
		}
	}
	if err := n.unmount(target(path)); err != nil {
		return err
	}
	for _, c := range k.copies {
		if err := n.detach(ctx, c); err != nil {
			return err
		}
	}
	if k.PV == nil {
		return nil
	}
	if k.IsUnconfirmed && k.Begun.Node == n.Name {
		return status.Errorf(codes.Aborted, "the node affinity of volume %s is about to be confirmed", k.handle)
	}
	err := n.patch(ctx, k, n.API.Unuse(k.Volume, n.Name))
	if err == nil {
		err = n.patch(ctx, k, n.API.Cancel(k.Volume, n.Name))
	}
	if err == nil {
		err = n.tidy(ctx, k)
	}
	if errors.Is(err, store.ErrAway) { // What cannot be seen now, Sweep looks at again.
		return nil
	}
	return err
}

// detach waits until the data of a copy is attached to no device: losetup detaches a device when nothing has it open.
func (n *Node) detach(ctx context.Context, c store.Copy) error {
	if err := n.detachLater(c); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Second, true, func(ctx context.Context) (bool, error) {
		isAttached, err := n.isAttached(ctx, c)
		return !isAttached && err == nil, err
	})
	if wait.Interrupted(err) {
		return status.Errorf(codes.Aborted, "volume %s is still in use", c.Handle)
	}
	return err
}
