package modeldriver

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// copying is what is counted of copies of volumes.
type copying struct {
	mutex sync.Mutex
	// refused has the nodes, by volumes, that had no room. Each counts once, however
	// often it is tried again.
	refused map[types.UID]string
}

// Copies returns the nodes on whose disks the volume with a handle takes space, complete or
// not.
func (d *Driver) Copies(handle string) []string {
	var nodes []string
	for i, segment := range d.config.Segments {
		if d.storage[i].holds(types.UID(handle)) {
			nodes = append(nodes, segment.Labels[corev1.LabelHostname])
		}
	}
	return nodes
}

// BeginCopy takes the space for a copy of a volume on a node, unless it has it, and returns
// false if there is none.
func (d *Driver) BeginCopy(handle, node string, bytes int64) bool {
	segment := d.segmentNamed(node)
	if segment >= 0 && d.storage[segment].begin(types.UID(handle), bytes, true) {
		return true
	}
	d.copying.mutex.Lock()
	defer d.copying.mutex.Unlock()
	if d.copying.refused[types.UID(handle)] != node {
		d.copying.refused[types.UID(handle)] = node
		d.failed.Add(1)
	}
	return false
}

// EndCopy makes a copy complete.
func (d *Driver) EndCopy(handle, node string) {
	segment := d.segmentNamed(node)
	if d.storage[segment].complete(types.UID(handle)) && !d.config.SilentRebuild {
		d.changed(segment)
	}
}

// RemoveCopy gives back the space of a copy.
func (d *Driver) RemoveCopy(handle, node string) {
	segment := d.segmentNamed(node)
	if d.storage[segment].release(types.UID(handle)) && !d.config.SilentRebuild {
		d.changed(segment)
	}
}

// segmentNamed returns the segment of a node that has its own, or -1.
func (d *Driver) segmentNamed(node string) int {
	return slices.IndexFunc(d.config.Segments, func(segment Segment) bool { return segment.Labels[corev1.LabelHostname] == node })
}
