// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/mount-utils"
	"k8s.io/utils/exec"

	"capacityv2.internal/test-e2e/driver/rebuild"
	"capacityv2.internal/test-e2e/driver/store"
)

// Node is the driver on a node. All errors of its methods have a gRPC status.
type Node struct {
	// Name is that of the node.
	Name string
	// Store is what is on the disks of the node, and Peers the folder with those of all nodes, by name.
	Store *store.Store
	Peers string
	// KeepOld is how long a copy is kept that was given up, after the new one was served.
	KeepOld time.Duration
	// API is the API server.
	API     rebuild.API
	Mounter mount.Interface
	// Exec runs losetup of util-linux, and mke2fs.
	Exec exec.Interface
	// Slots has a place for each copy that may go on at the same time.
	Slots *semaphore.Weighted

	// busy are the volumes for which a call goes on, and copies those that are being copied, by handle.
	busy, copies sync.Map
	// lanes are those of the folders of other nodes, by their names, and that of its own without one.
	lanes sync.Map
}

// HandleOf returns the handle of the volume with a name that a node creates. The PersistentVolume has that name.
func HandleOf(name, node string) string { return name + "@" + node }

func makerOf(handle string) string { return handle[strings.LastIndexByte(handle, '@')+1:] } // No name of a node has one.

func nameOf(handle string) string { return strings.TrimSuffix(handle, "@"+makerOf(handle)) }

// lock keeps other calls from a volume until unlock is called.
func (n *Node) lock(handle string) (unlock func(), err error) {
	if _, isBusy := n.busy.LoadOrStore(handle, true); isBusy {
		return nil, status.Errorf(codes.Aborted, "another call for volume %s goes on", handle)
	}
	return func() { n.busy.Delete(handle) }, nil
}

// known is what is known of a volume: by the API server, where it may have no PersistentVolume, and here.
type known struct {
	rebuild.Volume
	handle string
	copies []store.Copy
}

// begin locks a volume, and looks at it. endsCopy ends a copy that goes on before.
func (n *Node) begin(ctx context.Context, handle string, endsCopy bool) (k *known, unlock func(), err error) {
	if unlock, err = n.lock(handle); err != nil {
		return nil, nil, err
	}
	if endsCopy {
		err = n.cancel(ctx, handle)
	}
	if err == nil {
		k, err = n.look(ctx, handle)
	}
	if err != nil {
		unlock()
	}
	return k, unlock, withCode(err)
}

func (n *Node) look(ctx context.Context, handle string) (k *known, err error) {
	k = &known{handle: handle}
	err = n.do(ctx, "", func() (err error) {
		if err = n.Store.Check(); err == nil {
			k.copies, err = n.Store.Copies(handle)
		}
		return err
	})
	if err == nil {
		k.Volume, err = n.API.Volume(ctx, nameOf(handle), handle)
	}
	return k, err
}

// do does something with the folder of a node. One that hangs is waited for a while.
func (n *Node) do(ctx context.Context, node string, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	lane, _ := n.lanes.LoadOrStore(node, store.NewLane())
	return lane.(store.Lane).Do(ctx, do)
}

// find returns a copy that the node has.
func (k *known) find(id string) (store.Copy, bool) {
	i := slices.IndexFunc(k.copies, func(c store.Copy) bool { return c.ID == id })
	if i < 0 {
		return store.Copy{}, false
	}
	return k.copies[i], true
}

// current returns the copy that counts, if this node has it.
func (k *known) current() (store.Copy, bool) {
	c, has := k.find(k.Copy)
	return c, has && c.State != store.Half
}

// patch writes a change, unless the volume has changed.
func (n *Node) patch(ctx context.Context, k *known, change *rebuild.Change) (err error) {
	if change != nil {
		n.Store.Fault.Step("patch volume")
	}
	k.Volume, err = n.API.Patch(ctx, k.Volume, change)
	return err
}

// Rooms returns what is free in the pools with the names, or in all.
func (n *Node) Rooms(ctx context.Context, pools string) []int64 {
	if n.do(ctx, "", n.Store.Check) != nil {
		return nil
	}
	return slices.Collect(maps.Values(n.Store.Rooms(ctx, pools)))
}

// Get returns a copy that the node has, of which it does not matter whether it counts.
func (n *Node) Get(handle string) (store.Copy, error) {
	copies, err := n.Store.Copies(handle)
	if err != nil {
		return store.Copy{}, withCode(err)
	}
	if len(copies) == 0 {
		return store.Copy{}, status.Errorf(codes.NotFound, "volume %s is not on node %s", handle, n.Name)
	}
	return copies[0], nil
}

// withCode gives an error a status. None is final: a kubelet unstages what it could not stage, and nothing stays.
func withCode(err error) error {
	switch _, ok := status.FromError(err); {
	case err == nil || ok:
		return err
	case errors.Is(err, store.ErrNoRoom), errors.Is(err, unix.ENOSPC):
		return status.Error(codes.ResourceExhausted, err.Error())
	case apierrors.IsConflict(err):
		return status.Error(codes.Aborted, err.Error())
	}
	return status.Error(codes.Unavailable, err.Error())
}
