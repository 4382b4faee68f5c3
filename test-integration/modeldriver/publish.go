// SPDX-License-Identifier: Apache-2.0

package modeldriver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-helpers/storage/capacity"
)

// replaces is the annotation with the version that a write replaces. The server
// does not write an object that is the same as before.
const replaces = "example.com/replaces"

// object identifies a capacity object: a class in a segment.
type object struct {
	class   string
	segment int
	// overlapping counts those that are for the same.
	overlapping int
	// again asks for a write without a change.
	again bool
}

func (o object) name() string {
	name := fmt.Sprintf("%s-%d", o.class, o.segment)
	if o.overlapping > 0 {
		name += fmt.Sprintf("-%d", o.overlapping)
	}
	return name
}

// objectsOf returns the capacity objects of a segment.
func (d *Driver) objectsOf(segment int) []object {
	var objects []object
	for _, class := range d.Classes {
		if only := d.Segments[segment].Class; only != "" && only != class {
			continue
		}
		for i := range max(d.Overlapping, 1) {
			objects = append(objects, object{class: class, segment: segment, overlapping: i})
		}
	}
	return objects
}

// changed has the objects of a segment published, and of others with the same disks.
func (d *Driver) changed(segment int) {
	if d.Untracked || d.client == nil {
		return
	}
	from, to := segment, segment+1
	if d.Shared {
		from, to = 0, len(d.disks)
	}
	for ; from < to; from++ {
		for _, o := range d.objectsOf(from) {
			d.unpublished.AddAfter(o, d.RefreshDelay)
		}
	}
}

// Publish publishes what is free now, whatever the delay.
func (d *Driver) Publish() {
	for segment := range d.disks {
		for _, o := range d.objectsOf(segment) {
			d.unpublished.Add(o)
		}
	}
}

// Confirm turns the confirmation of published numbers on or off, as if another
// version of external-provisioner had taken over.
func (d *Driver) Confirm(on bool) { d.confirming.Store(on) }

// publishAll creates the capacity objects.
func (d *Driver) publishAll(ctx context.Context) error {
	var resourceVersion string
	var err error
	if d.confirming.Load() {
		if resourceVersion, _, err = d.volumesNow(ctx); err != nil {
			return err
		}
	}
	var all []*storagev1.CSIStorageCapacity
	for segment := range d.disks {
		for _, o := range d.objectsOf(segment) {
			want, err := d.capacity(ctx, o)
			if err != nil {
				return err
			}
			if resourceVersion != "" {
				capacity.SetReflectedVolumes(want, resourceVersion)
			}
			d.published[o] = want
			all = append(all, want)
		}
	}
	if d.Create != nil {
		return d.Create(ctx, all)
	}
	errs := make([]error, len(all))
	workqueue.ParallelizeUntil(ctx, workers, len(all), func(i int) {
		var created *storagev1.CSIStorageCapacity
		if created, errs[i] = d.client.StorageV1().CSIStorageCapacities(Namespace).Create(ctx, all[i], metav1.CreateOptions{}); errs[i] == nil {
			*all[i] = *created
		}
	})
	return errors.Join(errs...)
}

// publish updates one capacity object. As external-provisioner does, it leaves
// out a write that would change nothing, and it knows the free space before it
// waits for its turn to write: the numbers may be old when they are written, and
// one write may be for several volumes.
func (d *Driver) publish(ctx context.Context, o object) error {
	again := o.again
	o.again = false
	previous, confirming := d.published[o], d.confirming.Load()
	// Before the numbers: a volume that comes in between is in them, and not confirmed.
	var resourceVersion string
	confirmed := true
	if confirming {
		var volumes []corev1.PersistentVolume
		var err error
		if resourceVersion, volumes, err = d.volumesNow(ctx); err != nil {
			return err
		}
		confirmed = d.reflectsAll(o, previous, volumes)
	}
	want, err := d.capacity(ctx, o)
	if err != nil {
		return err
	}
	want.Annotations = maps.Clone(previous.Annotations)
	fault := NoFault
	switch {
	case again:
		copyReport(want, previous)
	case sameNumbers(previous, want) && confirmed:
		return nil
	default:
		if confirming {
			capacity.SetReflectedVolumes(want, resourceVersion)
		}
		if fault = d.suffer(o, want); fault == Dropped {
			return nil
		}
	}
	if d.limiter != nil {
		if err := d.limiter.Wait(ctx); err != nil {
			return context.Canceled
		}
	}
	updated, err := d.write(ctx, previous, want, fault == Recreated)
	if err != nil {
		return d.reread(ctx, o, err)
	}
	// What a server without the feature drops would look changed for ever.
	updated.AvailableCapacities = want.AvailableCapacities
	d.older[o], d.published[o] = previous, updated
	return nil
}

// write replaces an object, or deletes it and creates one of the same name.
func (d *Driver) write(ctx context.Context, previous, want *storagev1.CSIStorageCapacity, recreate bool) (*storagev1.CSIStorageCapacity, error) {
	objects := d.client.StorageV1().CSIStorageCapacities(Namespace)
	if !recreate {
		want.ResourceVersion = previous.ResourceVersion
		metav1.SetMetaDataAnnotation(&want.ObjectMeta, replaces, previous.ResourceVersion)
		updated, err := objects.Update(ctx, want, metav1.UpdateOptions{})
		if !apierrors.IsNotFound(err) {
			return updated, err
		}
		want.ResourceVersion = ""
	} else if err := objects.Delete(ctx, want.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	return objects.Create(ctx, want, metav1.CreateOptions{})
}

// reread looks what an object is after a write that may have happened or not.
func (d *Driver) reread(ctx context.Context, o object, failure error) error {
	failure = fmt.Errorf("write CSIStorageCapacity: %w", failure)
	got, err := d.client.StorageV1().CSIStorageCapacities(Namespace).Get(ctx, o.name(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return failure
	case err != nil:
		return errors.Join(failure, err)
	}
	d.published[o] = got
	return failure
}

func sameNumbers(a, b *storagev1.CSIStorageCapacity) bool {
	return apiequality.Semantic.DeepEqual(a.Capacity, b.Capacity) &&
		apiequality.Semantic.DeepEqual(a.MaximumVolumeSize, b.MaximumVolumeSize) &&
		apiequality.Semantic.DeepEqual(a.AvailableCapacities, b.AvailableCapacities)
}

// copyReport copies the numbers and what confirms them.
func copyReport(to, from *storagev1.CSIStorageCapacity) {
	to.Capacity, to.MaximumVolumeSize, to.AvailableCapacities = from.Capacity, from.MaximumVolumeSize, from.AvailableCapacities
	delete(to.Annotations, capacity.AnnReflectsVolumes)
	if value, ok := from.Annotations[capacity.AnnReflectsVolumes]; ok {
		metav1.SetMetaDataAnnotation(&to.ObjectMeta, capacity.AnnReflectsVolumes, value)
	}
}

// capacity returns the object as it has to be now.
func (d *Driver) capacity(ctx context.Context, o object) (*storagev1.CSIStorageCapacity, error) {
	numbers, err := d.getCapacity(ctx, o.segment)
	if err != nil {
		return nil, err
	}
	c := &storagev1.CSIStorageCapacity{
		ObjectMeta:       metav1.ObjectMeta{Name: o.name(), Namespace: Namespace},
		StorageClassName: o.class,
		NodeTopology:     d.selector(d.Segments[o.segment]),
		Capacity:         new(quantity(numbers.Capacity)),
	}
	if numbers.Maximum != nil {
		c.MaximumVolumeSize = new(quantity(*numbers.Maximum))
	}
	for _, pool := range numbers.Pools {
		c.AvailableCapacities = append(c.AvailableCapacities, quantity(pool))
	}
	return c, nil
}

func (d *Driver) selector(segment Segment) *metav1.LabelSelector {
	if !d.Expressions {
		return &metav1.LabelSelector{MatchLabels: segment.Labels}
	}
	selector := &metav1.LabelSelector{}
	for _, key := range slices.Sorted(maps.Keys(segment.Labels)) {
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{segment.Labels[key]}})
	}
	return selector
}
