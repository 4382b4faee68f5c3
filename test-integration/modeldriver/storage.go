// SPDX-License-Identifier: Apache-2.0

package modeldriver

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// storage is what the segments really have. Volumes are known by their handles.
type storage struct {
	mutex  sync.Mutex
	config *Config
	disks  []*disk // of the segments, of which several may have the same
	places map[string][]place
}

type disk struct {
	node string
	free []int64 // of each pool, in bytes
	// earlier is what was free before, the oldest first, as far as the lag needs it.
	earlier []moment
	// refused is how many volumes had no room. Copies count once, however often they are tried.
	refused       int
	refusedCopies []string
}

// moment is what was free until then.
type moment struct {
	until time.Time
	free  []int64
}

// place is where a volume is.
type place struct {
	segment, pool int
	// size is that of the volume, takes what it takes.
	size, takes int64
	created     time.Time
	// half is a copy that is not complete.
	half bool
}

func newStorage(config *Config) *storage {
	s := &storage{config: config, places: map[string][]place{}}
	for i, segment := range config.Segments {
		if config.Shared && i > 0 {
			s.disks = append(s.disks, s.disks[0])
			continue
		}
		d := &disk{node: segment.Name()}
		for _, pool := range segment.Pools {
			d.free = append(d.free, pool*max(config.Overcommit, 1))
		}
		s.disks = append(s.disks, d)
	}
	return s
}

// put places a volume, or a copy that is not complete, and returns where it is, or nil if it fits in
// no pool. A volume that has a place keeps it.
func (s *storage) put(segment int, handle string, size int64, half bool) *place {
	d, takes := s.disks[segment], size*max(s.config.Mirrors, 1)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	p := place{segment: segment, pool: -1, size: size, takes: takes, created: time.Now(), half: half}
	if known := s.find(segment, handle); known != nil {
		p = *known
		return &p
	}
	for pool, free := range d.free {
		if free >= takes && (p.pool < 0 || (free > d.free[p.pool]) == s.config.WorstFit) {
			p.pool = pool
		}
	}
	if p.pool < 0 {
		if half && !slices.Contains(d.refusedCopies, handle) {
			d.refusedCopies = append(d.refusedCopies, handle)
			d.refused++
		}
		return nil
	}
	if s.config.Thin {
		p.takes = 0
	}
	s.change(d, p.pool, -p.takes)
	s.places[handle] = append(s.places[handle], p)
	return &p
}

// change makes a pool larger, or smaller. The mutex has to be locked.
func (s *storage) change(d *disk, pool int, bytes int64) {
	if s.config.Lag > 0 {
		d.earlier = append(d.earlier, moment{until: time.Now(), free: slices.Clone(d.free)})
	}
	d.free[pool] += bytes
}

// find returns the place of a volume in a segment, or nil. The mutex has to be locked.
func (s *storage) find(segment int, handle string) *place {
	for i := range s.places[handle] {
		if p := &s.places[handle][i]; p.segment == segment {
			return p
		}
	}
	return nil
}

// placesOf returns all places of a volume, in the order of the segments.
func (s *storage) placesOf(handle string) []place {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.SortedFunc(slices.Values(s.places[handle]), func(a, b place) int { return cmp.Compare(a.segment, b.segment) })
}

// has returns whether a complete volume is in a segment.
func (s *storage) has(segment int, handle string) bool {
	return slices.ContainsFunc(s.placesOf(handle), func(p place) bool { return p.segment == segment && !p.half })
}

// complete ends a copy, and returns false if there was nothing to end.
func (s *storage) complete(segment int, handle string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	p := s.find(segment, handle)
	if p == nil || !p.half {
		return false
	}
	p.half = false
	return true
}

// remove gives the space of a volume back, and returns false if it has none.
func (s *storage) remove(segment int, handle string) bool {
	d := s.disks[segment]
	s.mutex.Lock()
	defer s.mutex.Unlock()
	p := s.find(segment, handle)
	if p == nil {
		return false
	}
	s.change(d, p.pool, p.takes)
	if s.places[handle] = slices.DeleteFunc(s.places[handle], func(p place) bool { return p.segment == segment }); len(s.places[handle]) == 0 {
		delete(s.places, handle)
	}
	return true
}

// resize adds bytes to a pool, or takes them if less than zero.
func (s *storage) resize(segment, pool int, bytes int64) {
	d := s.disks[segment]
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.change(d, pool, bytes)
}

// shown is what was free in a segment as long ago as the lag says.
func (s *storage) shown(segment int) []int64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	d, then := s.disks[segment], time.Now().Add(-s.config.Lag)
	d.earlier = slices.DeleteFunc(d.earlier, func(m moment) bool { return m.until.Before(then) })
	if len(d.earlier) > 0 {
		return slices.Clone(d.earlier[0].free)
	}
	return slices.Clone(d.free)
}
