// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/component-helpers/storage/capacity"

	"capacityv2.internal/test-integration/clustertest"
)

// app is a pod whose claim outlives it.
const app = "app"

// newVolumes are the pods with new volumes, each on the node of its name. All nodes have pools of
// 60 and 40Gi.
var newVolumes = []clustertest.Pod{
	{Name: togetherNode, Sizes: []string{"50Gi", "30Gi"}, Ephemeral: true},
	{Name: apartNode, Sizes: []string{"50Gi", "50Gi"}},
	{Name: manyNode, Sizes: []string{"55Gi", "55Gi"}},
	{Name: largeNode, Sizes: []string{"80Gi"}},
}

// components are programs by their names.
type components map[string]*clustertest.Process

// cell starts the provisioner beside the other programs, and returns what comes out. Nothing is
// left on the nodes. during, if not nil, is called when the provisioner has published the class.
func (w *world) cell(s set, class string, running components, during func()) outcome {
	w.users.Helper()
	for _, node := range nodes {
		if node != keptNode {
			w.driver.SetPools(node, newPools(node)...)
		}
	}
	w.drivers.CreateClass(class, w.driver.Name)
	programs := components{provisioner: startProvisioner(w.drivers, s.provisioner, w.driver), "kube-apiserver that writes": w.writer.Process, "kube-apiserver that reads": w.reader.Process}
	for name, p := range running {
		programs[name] = p
	}
	var o outcome
	o.published = w.observePools(class)
	if during != nil {
		during()
	}

	first := clustertest.Pod{Name: app, Class: class, Sizes: []string{"30Gi"}, NodeSelector: onNode(w, homeNode)}
	for _, pod := range append(slices.Clone(newVolumes), first) {
		pod.Class = class
		if pod.NodeSelector == nil {
			pod.NodeSelector = onNode(w, pod.Name)
		}
		w.users.CreatePod(pod)
	}
	o.drained = w.observeDrained(s.writer == on)
	o.together = w.observeNew(togetherNode)
	o.confirmation = w.observeConfirmation(class, togetherNode, 20<<30, "together-together-0", "together-together-1")
	o.apart = w.observeNew(apartNode)
	o.many = w.observeNew(manyNode)
	o.large = w.observeNew(largeNode)

	names := []string{app}
	for _, pod := range newVolumes {
		names = append(names, pod.Name)
	}
	w.clean(class, names...)
	for name, p := range programs {
		if err := checkAlive(name, p); err != nil {
			w.users.Error(err)
		}
	}
	programs[provisioner].Stop(w.users.TContext.TContext)
	return o
}

func onNode(w *world, node string) map[string]string {
	return map[string]string{nodeLabel: node}
}

// observePools waits until all nodes have their objects, and returns what these show.
func (w *world) observePools(class string) (shown string) {
	w.users.Helper()
	w.users.Eventually(func(ctx context.Context) (err error) {
		shown, err = w.published(ctx, class)
		return err
	})
	return shown
}

// published returns what the objects of all nodes without volumes of the class show.
func (w *world) published(ctx context.Context, class string) (string, error) {
	objects, err := w.objects(ctx, class)
	if err != nil {
		return "", err
	}
	shown := ""
	for _, node := range nodes {
		o, ok := objects[node]
		if !ok {
			return "", fmt.Errorf("node %s has no CSIStorageCapacity object", node)
		}
		free := w.driver.Free(node)
		slices.SortFunc(free, func(a, b int64) int { return cmp.Compare(b, a) })
		var total int64
		for _, pool := range free {
			total += pool
		}
		if o.Capacity == nil || o.Capacity.Value() != total {
			return "", fmt.Errorf("node %s has the capacity %v, want %d", node, o.Capacity, total)
		}
		var list []int64
		for _, q := range o.AvailableCapacities {
			list = append(list, q.Value())
		}
		isLargest := o.MaximumVolumeSize != nil && o.MaximumVolumeSize.Value() == free[0]
		form := fmt.Sprintf("list %v, maximum %v", list, o.MaximumVolumeSize)
		switch {
		case len(list) == 0 && o.MaximumVolumeSize == nil:
			form = sum
		case len(list) == 0 && isLargest:
			form = sumAndLargest
		case isLargest && slices.Equal(list, free):
			form = pools
		}
		if shown != "" && shown != form {
			return "", fmt.Errorf("node %s has %q, another one %q", node, form, shown)
		}
		shown = form
	}
	return shown, nil
}

// observeNew returns what becomes of a pod with new volumes on the node of its name. One that waits
// has to wait for a while. One whose volume fails is deleted: it would be tried for ever.
func (w *world) observeNew(pod string) string {
	w.users.Helper()
	const settled = time.Second
	var since time.Time
	result := ""
	w.users.Eventually(func(ctx context.Context) error {
		placed, err := w.users.Placed(ctx)
		switch {
		case err != nil:
			return err
		case w.driver.Failed(pod) > 0:
			result = fails
			return nil
		case placed[pod] == pod:
			result = runs
			return nil
		}
		if err := w.users.HasReason(pod, 1, clustertest.NoRoom); err != nil {
			since = time.Time{}
			return err
		}
		if since.IsZero() {
			since = time.Now()
		}
		if waited := time.Since(since); waited < settled {
			return fmt.Errorf("pod %s has waited for %s only", pod, waited)
		}
		result = waits
		return nil
	})
	switch result {
	case waits:
		w.users.ExpectNoRoom(pod, 1)
	case fails:
		w.deletePod(pod)
	}
	return result
}

// observeConfirmation returns whether the object of a node, with so many bytes of capacity, confirms
// the volumes of these claims.
func (w *world) observeConfirmation(class, node string, bytes int64, claims ...string) string {
	w.users.Helper()
	result := ""
	w.users.Eventually(func(ctx context.Context) error {
		objects, err := w.objects(ctx, class)
		if err != nil {
			return err
		}
		object := objects[node]
		if object.Capacity == nil || object.Capacity.Value() != bytes {
			return fmt.Errorf("node %s has the capacity %v, want %d", node, object.Capacity, bytes)
		}
		reflected, err := capacity.ReflectedVolumes(&object)
		switch {
		case errors.Is(err, capacity.ErrOutdated):
			result = ignored
			return nil
		case err != nil:
			return err
		case reflected == "":
			result = none
			return nil
		}
		for _, claim := range claims {
			written := w.users.Volume(claim).ResourceVersion
			if order, err := resourceversion.CompareResourceVersion(written, reflected); err != nil || order > 0 {
				return fmt.Errorf("node %s confirms volumes up to %s, want that of claim %s, %s (%v)", node, reflected, claim, written, err)
			}
		}
		result = valid
		return nil
	})
	return result
}

// observeDrained drains the node of app, releases its volume as drivers do that rebuild, and returns
// what becomes of the pod that comes after it. It may use its old node, and one without room.
func (w *world) observeDrained(isReleased bool) string {
	w.users.Helper()
	w.users.ExpectNode(app, homeNode)
	claim := app + "-0"
	w.users.Cordon(homeNode)
	w.deletePod(app)
	w.release(claim, isReleased)
	// The scheduler learns of the node and of the volume by different watches, on a busy machine late.
	time.Sleep(3 * time.Second)
	w.users.CreatePod(clustertest.Pod{Name: app, Claims: []string{claim}, NodeSelector: map[string]string{rebuildLabel: "true"}})

	result := ""
	w.users.Eventually(func(ctx context.Context) error {
		placed, err := w.users.Placed(ctx)
		node := placed[app]
		noRoom := w.users.HasReason(app, 1, clustertest.NoRoom)
		notRebuilt := w.users.HasReason(app, 1, clustertest.RebuildDriver)
		atHome := errors.Join(w.users.HasReason(app, 1, clustertest.VolumeElsewhere), w.users.HasReason(app, 1, "node(s) were unschedulable"))
		switch {
		case err != nil:
			return err
		case node == fullNode:
			result = anywhere
		case node != "":
			result = "on " + node
		case noRoom == nil:
			result = moves
		case notRebuilt == nil:
			result = waits
		case atHome == nil:
			result = stays
		default:
			return errors.Join(noRoom, notRebuilt, atHome)
		}
		return nil
	})
	switch result {
	case anywhere: // and nobody tells the driver
		if node := w.selectedNode(claim); node != homeNode {
			w.users.Errorf("claim %s was sent to %q, want %q", claim, node, homeNode)
		}
	case stays, waits:
		w.users.Uncordon(homeNode)
		w.users.ExpectNode(app, homeNode)
	case moves:
		w.users.ExpectNoRoom(app, 1)
		w.driver.SetPools(fullNode, 50<<30)
		w.users.ExpectNode(app, fullNode)
		if node := w.selectedNode(claim); node != fullNode {
			w.users.Errorf("claim %s was sent to %q, want %q", claim, node, fullNode)
		}
		w.users.Eventually(func(ctx context.Context) error {
			list, err := w.users.Client().CoreV1().Events(w.users.Namespace).List(ctx, metav1.ListOptions{
				FieldSelector: "reason=CapacityAwareRescheduling,type=Normal,involvedObject.kind=Pod,involvedObject.name=" + app,
			})
			if err == nil && len(list.Items) == 0 {
				err = errors.New("pod " + app + " has no event CapacityAwareRescheduling")
			}
			return err
		})
	}
	w.users.Uncordon(homeNode)
	return result
}

// release unsets the node affinity of the volume of a claim, and says that the home node has the
// data, as docs/reference/rebuilding-contract.md has it. Without MutablePVNodeAffinity, the API server
// refuses that.
func (w *world) release(claim string, isReleased bool) {
	w.users.Helper()
	pv := w.users.Volume(claim)
	node, err := w.drivers.Client().CoreV1().Nodes().Get(w.drivers, homeNode, metav1.GetOptions{})
	w.drivers.ExpectNoError(err, "get node")
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"pv.kubernetes.io/home-nodes": fmt.Sprintf("%s=%s", node.Name, node.UID)}},
		"spec":     map[string]any{"nodeAffinity": nil},
	})
	w.drivers.ExpectNoError(err, "patch")
	_, err = w.drivers.Client().CoreV1().PersistentVolumes().Patch(w.drivers, pv.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	switch {
	case isReleased:
		w.drivers.ExpectNoError(err, "release the volume")
	case !apierrors.IsInvalid(err):
		w.drivers.Errorf("release the volume: %v, want that the node affinity cannot be changed", err)
	}
}
