package modeldriver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
)

// object identifies a capacity object: a class in a segment.
type object struct {
	class   string
	segment int
	// again asks for a write without a change.
	again bool
}

func (o object) name() string { return fmt.Sprintf("%s-%d", o.class, o.segment) }

// publishAll creates the capacity objects.
func (d *Driver) publishAll(ctx context.Context) error {
	var objects []object
	for segment := range d.storage {
		objects = append(objects, d.objectsOf(segment)...)
	}
	created := make([]*storagev1.CSIStorageCapacity, len(objects))
	errs := make([]error, len(objects))
	workqueue.ParallelizeUntil(ctx, workers, len(objects), func(i int) {
		created[i], errs[i] = d.client.StorageV1().CSIStorageCapacities(Namespace).Create(ctx, d.capacity(objects[i]), metav1.CreateOptions{})
	})
	for i, o := range objects {
		d.published[o] = created[i]
	}
	return errors.Join(errs...)
}

// publish updates one capacity object. As external-provisioner does, it leaves
// out a write that would change nothing.
func (d *Driver) publish(ctx context.Context, o object) error {
	again := o.again
	o.again = false
	previous, want := d.published[o], d.capacity(o)
	switch {
	case again:
		copyNumbers(want, previous)
	case sameNumbers(previous, want) || !d.suffer(o, want):
		return nil
	}
	want.ResourceVersion = previous.ResourceVersion
	// The server does not write an object that is the same as before.
	want.Annotations = map[string]string{"example.com/replaces": previous.ResourceVersion}
	updated, err := d.client.StorageV1().CSIStorageCapacities(Namespace).Update(ctx, want, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("update CSIStorageCapacity: %w", err)
	}
	if !d.config.TotalOnly {
		// What a server without the feature drops would look changed for ever.
		updated.AvailableCapacities = want.AvailableCapacities
	}
	d.older[o], d.published[o] = previous, updated
	return nil
}

func sameNumbers(a, b *storagev1.CSIStorageCapacity) bool {
	return apiequality.Semantic.DeepEqual(a.Capacity, b.Capacity) &&
		apiequality.Semantic.DeepEqual(a.MaximumVolumeSize, b.MaximumVolumeSize) &&
		apiequality.Semantic.DeepEqual(a.AvailableCapacities, b.AvailableCapacities)
}

func copyNumbers(to, from *storagev1.CSIStorageCapacity) {
	to.Capacity, to.MaximumVolumeSize, to.AvailableCapacities = from.Capacity, from.MaximumVolumeSize, from.AvailableCapacities
}

// capacity returns the object as it has to be now.
func (d *Driver) capacity(o object) *storagev1.CSIStorageCapacity {
	segment := d.config.Segments[o.segment]
	pools := d.storage[o.segment].pools()
	c := &storagev1.CSIStorageCapacity{
		ObjectMeta:        metav1.ObjectMeta{Name: o.name(), Namespace: Namespace},
		StorageClassName:  o.class,
		NodeTopology:      &metav1.LabelSelector{MatchLabels: segment.Labels},
		Capacity:          new(quantity(sum(pools))),
		MaximumVolumeSize: new(quantity(slices.Max(pools))),
	}
	if !d.config.TotalOnly {
		for _, pool := range pools {
			c.AvailableCapacities = append(c.AvailableCapacities, quantity(pool))
		}
	}
	return c
}

func sum(pools []int64) int64 {
	var total int64
	for _, pool := range pools {
		total += pool
	}
	return total
}
