// SPDX-License-Identifier: Apache-2.0

package modeldriver

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// claimParameter has the name of the claim. external-provisioner sets it, if it is told to.
	claimParameter = "csi.storage.k8s.io/pvc/name"
	// classParameter has the class, for segments that are for one.
	classParameter = "class"
)

// createVolume answers CreateVolume, and also returns which segment was asked, if any.
func (d *Driver) createVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.Volume, int, error) {
	requirements := r.GetAccessibilityRequirements()
	wanted := slices.Concat(requirements.GetPreferred(), requirements.GetRequisite())
	if len(wanted) == 0 {
		return nil, -1, status.Error(codes.InvalidArgument, "no topology")
	}
	bytes := r.GetCapacityRange().GetRequiredBytes()
	if unit := d.RoundUp; unit > 0 {
		bytes = (bytes + unit - 1) / unit * unit
	}
	segment := d.segmentOf(r.Parameters[classParameter], wanted[0].GetSegments())
	if known := d.placesOf(r.Name); len(known) > 0 {
		segment, bytes = known[0].segment, known[0].size
		if err := d.check(known[0], r); err != nil {
			return nil, segment, err
		}
	}
	if d.BeforeCreate != nil {
		if err := d.BeforeCreate(ctx, r.Parameters[claimParameter]); err != nil {
			return nil, segment, err
		}
	}
	if segment < 0 {
		return nil, segment, status.Errorf(codes.ResourceExhausted, "no pools for %s on %v", r.Name, wanted[0].GetSegments())
	}
	first := d.put(segment, r.Name, bytes, false)
	if first == nil {
		return nil, segment, status.Errorf(codes.ResourceExhausted, "no pool has %d bytes for %s", bytes, r.Name)
	}
	places := []place{*first}
	for other := 0; len(places) < d.Replicas && other < len(d.disks); other++ {
		if other == segment {
			continue
		}
		if p := d.put(other, r.Name, bytes, false); p != nil {
			places = append(places, *p)
		}
	}
	if d.VolumeDelay > 0 {
		d.changedBy(r.Name)
		select {
		case <-time.After(time.Until(first.created.Add(d.VolumeDelay))):
		case <-ctx.Done():
			return nil, segment, status.FromContextError(ctx.Err()).Err()
		}
	}
	return &csi.Volume{VolumeId: r.Name, CapacityBytes: bytes, AccessibleTopology: d.accessible(places)}, segment, nil
}

// check returns an error if a volume is not what a request for its name asks for.
func (d *Driver) check(place place, r *csi.CreateVolumeRequest) error {
	requisite, size := r.GetAccessibilityRequirements().GetRequisite(), r.GetCapacityRange()
	isThere := func(t *csi.Topology) bool {
		other := d.segmentOf("", t.GetSegments())
		return other >= 0 && d.disks[other] == d.disks[place.segment]
	}
	switch {
	case len(requisite) > 0 && !slices.ContainsFunc(requisite, isThere):
		return status.Errorf(codes.AlreadyExists, "volume %s is on %s, which is none of the requisite topologies", r.Name, d.Segments[place.segment].Name())
	case place.size < size.GetRequiredBytes() || size.GetLimitBytes() > 0 && place.size > size.GetLimitBytes():
		return status.Errorf(codes.AlreadyExists, "volume %s has %d bytes, want %d to %d", r.Name, place.size, size.GetRequiredBytes(), size.GetLimitBytes())
	}
	return nil
}

// refuse counts a volume for which a segment, or none, had no room.
func (d *Driver) refuse(segment int) {
	if segment < 0 {
		return
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.disks[segment].refused++
}

// accessible returns the topologies that a volume in some places has: none if it is
// accessible from everywhere.
func (d *Driver) accessible(places []place) (topologies []*csi.Topology) {
	for _, place := range places {
		labels := maps.Clone(d.Segments[place.segment].Labels)
		maps.DeleteFunc(labels, func(key, _ string) bool { return d.AffinityKeys != nil && !slices.Contains(d.AffinityKeys, key) })
		if len(labels) > 0 {
			topologies = append(topologies, &csi.Topology{Segments: labels})
		}
	}
	return topologies
}

// deleteVolume gives back the space of a volume, and returns false if it has none.
func (d *Driver) deleteVolume(handle string) (deleted bool) {
	for _, place := range d.placesOf(handle) {
		if d.remove(place.segment, handle) {
			deleted = true
			d.changed(place.segment)
		}
	}
	return deleted
}

// changedBy has the objects of all segments with a volume published.
func (d *Driver) changedBy(handle string) {
	for _, place := range d.placesOf(handle) {
		d.changed(place.segment)
	}
}
