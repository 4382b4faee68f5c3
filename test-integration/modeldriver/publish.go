package modeldriver

import (
	"context"
	"fmt"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// object identifies a capacity object: a class in a segment.
type object struct {
	class   string
	segment int
}

func (o object) name() string { return fmt.Sprintf("%s-%d", o.class, o.segment) }

// publish writes one capacity object. As external-provisioner does, it leaves
// out a write that would change nothing.
func (d *Driver) publish(ctx context.Context, o object) error {
	previous := d.published[o]
	want := d.capacity(o)
	client := d.client.StorageV1().CSIStorageCapacities(Namespace)
	if previous == nil {
		created, err := client.Create(ctx, want, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create CSIStorageCapacity: %w", err)
		}
		d.published[o] = created
		return nil
	}
	if apiequality.Semantic.DeepEqual(previous.Capacity, want.Capacity) &&
		apiequality.Semantic.DeepEqual(previous.MaximumVolumeSize, want.MaximumVolumeSize) &&
		apiequality.Semantic.DeepEqual(previous.AvailableCapacities, want.AvailableCapacities) {
		return nil
	}
	want.ResourceVersion = previous.ResourceVersion
	updated, err := client.Update(ctx, want, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("update CSIStorageCapacity: %w", err)
	}
	if !d.config.TotalOnly {
		// What a server without the feature drops would look changed for ever.
		updated.AvailableCapacities = want.AvailableCapacities
	}
	d.published[o] = updated
	return nil
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
