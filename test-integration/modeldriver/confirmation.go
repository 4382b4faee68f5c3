// SPDX-License-Identifier: Apache-2.0

package modeldriver

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/component-helpers/storage/capacity"
)

// volumesNow returns up to which resourceVersion PersistentVolumes have been written, and
// those that there are. Numbers that are taken after that include all of them: a volume takes
// its space before it is written. It asks the API server, so that it also knows what a cache
// would only show later.
func (d *Driver) volumesNow(ctx context.Context) (resourceVersion string, volumes []corev1.PersistentVolume, err error) {
	list, err := d.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", nil, fmt.Errorf("list volumes: %w", err)
	}
	return list.ResourceVersion, list.Items, nil
}

// reflectsAll returns whether an object confirms that its numbers include the volumes as they
// are now, as far as they are its own. Numbers for which it confirms nothing do not.
func (d *Driver) reflectsAll(o object, current *storagev1.CSIStorageCapacity, volumes []corev1.PersistentVolume) bool {
	reflected, err := capacity.ReflectedVolumes(current)
	if err != nil || reflected == "" {
		return false
	}
	for i := range volumes {
		if volume := &volumes[i]; d.isOf(volume, o) {
			if order, err := resourceversion.CompareResourceVersion(volume.ResourceVersion, reflected); err != nil || order > 0 {
				return false
			}
		}
	}
	return true
}

// isOf returns whether a volume takes space that an object is about.
func (d *Driver) isOf(volume *corev1.PersistentVolume, o object) bool {
	return volume.Spec.StorageClassName == o.class && volume.Spec.CSI != nil && d.has(o.segment, volume.Spec.CSI.VolumeHandle)
}

// volumeWritten has the objects of a volume confirm it.
func (d *Driver) volumeWritten(obj any) {
	volume, ok := obj.(*corev1.PersistentVolume)
	if !ok || volume.Spec.CSI == nil || !d.confirming.Load() {
		return
	}
	for _, place := range d.placesOf(volume.Spec.CSI.VolumeHandle) {
		for _, o := range d.objectsOf(place.segment) {
			if d.isOf(volume, o) {
				d.unpublished.AddAfter(o, d.RefreshDelay)
			}
		}
	}
}
