package rebuild

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"capacityv2.internal/test-e2e/driver/pool"
	"capacityv2.internal/test-e2e/driver/volume"
)

// timeout is for the API server.
const timeout = 15 * time.Second

// Requests implements volume.Placement for the driver on a node. It keeps no cache: requests
// are rare, and the answer must not be old.
type Requests struct{ placer }

// NewRequests returns one for a driver, whose topology has a key.
func NewRequests(client kubernetes.Interface, driver, key string) *Requests {
	return &Requests{placer{client: client, driver: driver, key: key}}
}

// Ask implements volume.Placement. It fails with Aborted if the volume is, or was sent,
// elsewhere, and with Unavailable if that cannot be told now.
func (r *Requests) Ask(ctx context.Context, question volume.Question, v pool.Volume, node string, holders ...string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		pv, err := r.client.CoreV1().PersistentVolumes().Get(ctx, v.Name, metav1.GetOptions{})
		isOther := err == nil && (!r.isOurs(pv) || pv.Spec.CSI.VolumeHandle != v.ID)
		if (v.State == pool.Creating || question == volume.Drop && v.FencedFor == pool.Deletion) && (isOther || apierrors.IsNotFound(err)) {
			return nil // Nobody knows of it.
		}
		if err != nil {
			return err
		}
		if isOther {
			return status.Errorf(codes.Unavailable, "PersistentVolume %s is not that of volume %s", pv.Name, v.ID)
		}
		if question == volume.Make {
			return status.Errorf(codes.Aborted, "volume %s exists", v.ID)
		}
		if question == volume.Drop && r.has(pv, node) {
			return status.Errorf(codes.FailedPrecondition, "volume %s is on %s", v.ID, node)
		}
		if question == volume.Drop && v.FencedFor == pool.Deletion {
			return nil // which needs no claim
		}
		if pv, err = r.confirm(ctx, pv); err != nil {
			return err
		}
		if len(holders) > 0 && !slices.ContainsFunc(holders, func(holder string) bool { return r.has(pv, holder) }) {
			return status.Errorf(codes.Unavailable, "PersistentVolume %s does not know %v, which have volume %s by the books; are they older?", pv.Name, holders, v.ID)
		}
		return r.answer(ctx, pv, question, node, v.FencedFor)
	})
	if _, ok := status.FromError(err); !ok {
		return status.Error(codes.Unavailable, err.Error())
	}
	return err
}

func (r *Requests) answer(ctx context.Context, pv *corev1.PersistentVolume, question volume.Question, node, fencedFor string) error {
	named := r.named(pv)
	isNamed := slices.Contains(named, node) && (question != volume.Named || len(named) == 1)
	switch {
	case question == volume.Drop && pv.Annotations[annBegun] == node && len(named) == 0:
		_, err := r.patch(ctx, pv, "", map[string]any{annBegun: nil}, nil)
		return err
	case question == volume.Drop, isNamed, question == volume.Show && len(named) > 0:
		return nil
	case len(named) > 0, question == volume.Named:
		return status.Errorf(codes.Aborted, "volume %s is on %v, not on %s", pv.Spec.CSI.VolumeHandle, named, node)
	}
	homes, _ := storagehelpers.HomeNodesOf(pv)
	if question == volume.Show {
		return r.show(ctx, pv, homes, node, fencedFor)
	}
	return r.request(ctx, pv, homes, question, node)
}

// request lets a node have a released volume that it asks for: the one where the claim was
// sent, or, to serve what it has, a home node if nothing was begun there. A stale request gets
// Aborted.
func (r *Requests) request(ctx context.Context, pv *corev1.PersistentVolume, homes []storagehelpers.HomeNode, question volume.Question, node string) error {
	homes, usable, err := presentOf(ctx, r.live, homes)
	if err != nil {
		return err
	}
	present := namesOf(homes)
	selected, err := r.selectedNode(ctx, pv)
	if err != nil {
		return err
	}
	isHome, begun := slices.Contains(present, node), pv.Annotations[annBegun]
	if !isHome { // The controller would release a volume without homes that is on a node that does not exist.
		if _, err := r.live(ctx, node); err != nil {
			return err
		}
	}
	switch {
	case selected != node && (!isHome || question == volume.Begin || begun != "" && begun == selected):
		return elsewhere(pv)
	case question == volume.Begin && begun == node:
		return nil
	case question == volume.Begin:
		_, err := r.patch(ctx, pv, "", map[string]any{annBegun: node}, nil)
		return err
	case !isHome:
		return r.set(ctx, pv, []string{node}, "rebuilt")
	case usable && slices.Contains(present, selected):
		return r.set(ctx, pv, present, "returned")
	}
	return nil // Its pod tolerates the cordon, or the claim was sent elsewhere.
}

// show adds a node that has come back to the home nodes: it has a complete copy. The node for which that is fenced may have one,
// too, and only one of them stays. If its Node object is gone, that one only gets the volume by an affinity, which ends the list.
func (r *Requests) show(ctx context.Context, pv *corev1.PersistentVolume, homes []storagehelpers.HomeNode, node, fencedFor string) error {
	present, _, err := presentOf(ctx, r.live, homes)
	if err != nil || slices.Contains(namesOf(present), fencedFor) {
		return err
	}
	shown, _, err := presentOf(ctx, r.live, []storagehelpers.HomeNode{{Name: node}})
	if err != nil || len(shown) == 0 || slices.Contains(homes, shown[0]) {
		return err
	}
	homes = slices.DeleteFunc(homes, func(h storagehelpers.HomeNode) bool { return h.Name == node })
	_, err = r.patch(ctx, pv, "", map[string]any{storagehelpers.AnnHomeNodes: storagehelpers.FormatHomeNodes(append(homes, shown...))}, nil)
	return err
}

// Self implements volume.Placement.
func (r *Requests) Self(ctx context.Context, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	node, err := r.live(ctx, name)
	if err != nil {
		return "", err
	}
	return string(node.UID), nil
}

// IsOff implements volume.Placement: somebody has put the node out of service, which is
// the promise that it is off. A node whose object was deleted may run.
func (r *Requests) IsOff(ctx context.Context, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	node, err := r.live(ctx, name)
	return err == nil && isOutOfService(node)
}
