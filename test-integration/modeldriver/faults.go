// SPDX-License-Identifier: Apache-2.0

package modeldriver

import (
	storagev1 "k8s.io/api/storage/v1"
)

// Fault is what goes wrong when a capacity object gets published.
type Fault int

const (
	// NoFault publishes what is free.
	NoFault Fault = iota
	// Dropped publishes nothing. The next change or poll makes up for it.
	Dropped
	// Doubled publishes what is free, and after half of the delay the same again,
	// which is another version of the object without news.
	Doubled
	// Outdated publishes what was published before the last time, and what is free
	// after the delay, as if two writes had changed places.
	Outdated
	// Recreated deletes the object and creates another one, with a new UID, as
	// external-provisioner does when segments or classes change.
	Recreated
)

// suffer returns what goes wrong with an object that is about to be published, and
// changes it accordingly.
func (d *Driver) suffer(o object, want *storagev1.CSIStorageCapacity) Fault {
	if d.Faults == nil {
		return NoFault
	}
	fault := d.Faults()
	switch fault {
	case Doubled:
		again := o
		again.again = true
		d.unpublished.AddAfter(again, d.RefreshDelay/2)
	case Outdated:
		if older := d.older[o]; older != nil {
			copyReport(want, older)
			d.unpublished.AddAfter(o, d.RefreshDelay)
		}
	}
	return fault
}
