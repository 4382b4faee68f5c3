// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/capacity"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// stored is what outlives the programs.
type stored struct {
	world *world
	// volumes are those of the claims that stay, as text.
	volumes map[string]string
	// quiet tells that the objects below are there.
	quiet bool
}

// keptClass is the class of the claims that stay.
const keptClass = "kept"

// keeper is a pod that stays.
var keeper = clustertest.Pod{Name: "keeper", Class: keptClass, Sizes: []string{"50Gi", "30Gi"}}

// A CSIStorageCapacity and a CSIDriver of each of these names are no program's. The test creates
// them with the gate on, and writes something else to the second ones at each step.
const (
	quiet   = "quiet.example.com"
	written = "written.example.com"
)

// use does what is to be done while the provisioner runs: pods get volumes of the class that stays. The objects have to
// show what the step wants. It returns whether that of their node confirms volumes.
func (s *stored) use(w *world, number int, want step) string {
	w.users.Helper()
	if s.volumes == nil {
		w.drivers.CreateClass(keptClass, w.driver.Name)
		s.createReleased(w)
		pod := keeper
		pod.NodeSelector = onNode(w, keptNode)
		w.users.CreatePod(pod)
		w.users.ExpectNode(keeper.Name, keptNode)
	}
	// What the last provisioner has written is not what this one has to.
	w.users.Eventually(func(ctx context.Context) error {
		got, err := w.published(ctx, keptClass)
		if err == nil && got != want.published {
			err = fmt.Errorf("the objects of class %s show %q, want %q", keptClass, got, want.published)
		}
		return err
	})
	more := clustertest.Pod{Name: fmt.Sprintf("more-%d", number), Class: keptClass, Sizes: []string{"1Gi"}, NodeSelector: onNode(w, keptNode)}
	w.users.CreatePod(more)
	w.users.ExpectNode(more.Name, keptNode)

	var bytes int64
	for _, free := range w.driver.Free(keptNode) {
		bytes += free
	}
	got := w.observeConfirmation(keptClass, keptNode, bytes, more.Name+"-0")
	if got != want.confirmation {
		w.users.Errorf("the confirmation of class %s is %q, want %q", keptClass, got, want.confirmation)
	}
	return got
}

// createReleased creates a claim whose volume was released while its node was cordoned.
func (s *stored) createReleased(w *world) {
	w.users.Helper()
	const name = "released"
	claim, err := w.users.Client().CoreV1().PersistentVolumeClaims(w.users.Namespace).Create(w.users, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{storagehelpers.AnnSelectedNode: homeNode}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(keptClass), VolumeName: name, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{})
	w.users.ExpectNoError(err, "create claim")
	w.users.CreateVolume(name, keptClass, w.driver.Name, "1Gi", func(pv *st.PersistentVolumeWrapper) {
		pv.Annotations = map[string]string{"pv.kubernetes.io/home-nodes": homeNode + "=5b0fa3f1-3f1d-4d1c-8b11-0d2a3c4b5e6f"}
		pv.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: name, UID: claim.UID}
	})
	w.users.Eventually(func(context.Context) error {
		if phase := w.users.Claim(name).Status.Phase; phase != corev1.ClaimBound {
			return fmt.Errorf("claim %s is %s", name, phase)
		}
		return nil
	})
}

// expectVolumes checks that the claims that stay have the same volumes as before, that these are
// where they were, and that their pods are on their node.
func (s *stored) expectVolumes(w *world) {
	w.users.Helper()
	claims, _, err := w.claims(w.users, keptClass)
	w.users.ExpectNoError(err, "list claims")
	now := map[string]string{}
	for _, name := range claims {
		claim, pv := w.users.Claim(name), w.users.Volume(name)
		now[name] = fmt.Sprintf("claim %s is %s, volume %s of claim %v is %s at %q, with the data on %q", claim.UID, claim.Status.Phase,
			pv.Name, pv.Spec.ClaimRef.UID, pv.Status.Phase, pv.Spec.NodeAffinity, pv.Annotations["pv.kubernetes.io/home-nodes"])
		if before, ok := s.volumes[name]; ok && before != now[name] {
			w.users.Errorf("%s: %s, want as before: %s", name, now[name], before)
		}
		if pod, isPod := strings.CutSuffix(name, "-0"); isPod {
			w.users.ExpectNode(pod, keptNode)
		}
	}
	for name := range s.volumes {
		if _, ok := now[name]; !ok {
			w.users.Errorf("claim %s is gone", name)
		}
	}
	s.volumes = maps.Clone(now)
}

// readFields returns what is stored in the objects that are no program's, before anybody has written
// to them: the quiet and the written one.
func (s *stored) readFields(w *world, want step) (quietFields, writtenFields fields) {
	w.users.Helper()
	if !s.quiet {
		return notThere, notThere
	}
	read := func(name string, want fields) fields {
		object, err := w.users.Client().StorageV1().CSIStorageCapacities(modeldriver.Namespace).Get(w.users, name, metav1.GetOptions{})
		w.users.ExpectNoError(err, "get CSIStorageCapacity")
		driver, err := w.users.Client().StorageV1().CSIDrivers().Get(w.users, name, metav1.GetOptions{})
		w.users.ExpectNoError(err, "get CSIDriver")
		got := fields{listOf(object), rebuildingOf(driver)}
		if got != want {
			w.users.Errorf("%s has the list %q and volumeRebuilding %q, want %q and %q", name, got.list, got.rebuilding, want.list, want.rebuilding)
		}
		if !maps.Equal(object.Annotations, confirmed.Annotations) {
			w.users.Errorf("%s has the annotations %q, want %q", name, object.Annotations, confirmed.Annotations)
		}
		return got
	}
	return read(quiet, want.quiet), read(written, want.written)
}

// confirmed has a list, and confirms volumes.
var confirmed = func() *storagev1.CSIStorageCapacity {
	object := &storagev1.CSIStorageCapacity{
		StorageClassName: quiet, Capacity: new(resource.MustParse("12Gi")), MaximumVolumeSize: new(resource.MustParse("7Gi")),
		AvailableCapacities: []resource.Quantity{resource.MustParse("7Gi"), resource.MustParse("5Gi")},
	}
	capacity.SetReflectedVolumes(object, "5925")
	return object
}()

// writeFields creates the objects that are no program's, with the gate on. Otherwise it writes a
// label to those that get written.
func (s *stored) writeFields(w *world, k kind) {
	w.users.Helper()
	capacities, drivers := w.users.Client().StorageV1().CSIStorageCapacities(modeldriver.Namespace), w.users.Client().StorageV1().CSIDrivers()
	if k == on && !s.quiet {
		for _, name := range []string{quiet, written} {
			object := confirmed.DeepCopy()
			object.Name = name
			_, err := capacities.Create(w.users, object, metav1.CreateOptions{})
			w.users.ExpectNoError(err, "create CSIStorageCapacity")
			_, err = drivers.Create(w.users, &storagev1.CSIDriver{
				ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSIDriverSpec{VolumeRebuilding: new(true)},
			}, metav1.CreateOptions{})
			w.users.ExpectNoError(err, "create CSIDriver")
		}
		s.quiet = true
	}
	if !s.quiet {
		return
	}
	object, err := capacities.Get(w.users, written, metav1.GetOptions{})
	w.users.ExpectNoError(err, "get CSIStorageCapacity")
	driver, err := drivers.Get(w.users, written, metav1.GetOptions{})
	w.users.ExpectNoError(err, "get CSIDriver")
	object.Labels, driver.Labels = map[string]string{"written-by": string(k)}, map[string]string{"written-by": string(k)}
	if k == on {
		object.AvailableCapacities, driver.Spec.VolumeRebuilding = confirmed.AvailableCapacities, new(true)
	}
	_, err = capacities.Update(w.users, object, metav1.UpdateOptions{})
	w.users.ExpectNoError(err, "update CSIStorageCapacity")
	_, err = drivers.Update(w.users, driver, metav1.UpdateOptions{})
	w.users.ExpectNoError(err, "update CSIDriver")
}

func listOf(object *storagev1.CSIStorageCapacity) string {
	var list []string
	for _, q := range object.AvailableCapacities {
		list = append(list, q.String())
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

func rebuildingOf(driver *storagev1.CSIDriver) string {
	if driver.Spec.VolumeRebuilding == nil {
		return "unset"
	}
	return fmt.Sprint(*driver.Spec.VolumeRebuilding)
}
