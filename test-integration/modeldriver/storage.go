package modeldriver

import (
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"capacityv2.internal/test-integration/history"
)

// storage is what a segment really has.
type storage struct {
	mutex sync.Mutex
	// free has the bytes of each pool.
	free []int64
	// thin pools never fill up: their volumes take space only when written.
	thin bool
	// worstFit takes the largest pool.
	worstFit bool
	volumes  map[types.UID]allocation
	// history is for what happens to the node. It may be nil.
	history *history.Recorder
	node    string
}

// allocation is the place of a volume.
type allocation struct {
	pool int
	size int64
	// half is a copy that is not complete.
	half bool
}

func newStorage(pools []int64, thin, worstFit bool) *storage {
	return &storage{free: slices.Clone(pools), thin: thin, worstFit: worstFit, volumes: map[types.UID]allocation{}}
}

// record begins the history of a node.
func (s *storage) record(recorder *history.Recorder, node string) {
	s.history, s.node = recorder, node
	pools := map[string]int64{}
	for pool, free := range s.free {
		pools[strconv.Itoa(pool)] = free
	}
	s.call(history.Operation{Kind: history.Start, Pools: pools})(history.OK, "")
}

// call notes the beginning of a call, and returns what notes its end.
func (s *storage) call(o history.Operation) (end func(history.Result, string)) {
	o.Node = s.node
	return s.history.Begin(o)
}

// allocate places the volume of a claim in a pool, and returns false if it fits in
// none. A volume that has a place keeps it.
func (s *storage) allocate(claim types.UID, size int64) bool {
	return s.begin(claim, size, false)
}

// begin is allocate for a copy that may not be complete.
func (s *storage) begin(claim types.UID, size int64, half bool) bool {
	end := s.call(history.Operation{Kind: history.Create, Volume: string(claim), Bytes: size})
	pool := s.place(claim, size, half)
	if pool < 0 {
		end(history.Refused, "")
		return false
	}
	end(history.OK, strconv.Itoa(pool))
	return true
}

// place returns the pool of a volume, which it has chosen unless the volume has one, or -1.
func (s *storage) place(claim types.UID, size int64, half bool) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if known, ok := s.volumes[claim]; ok {
		return known.pool
	}
	best := -1
	for pool, free := range s.free {
		if free >= size && (best < 0 || (free > s.free[best]) == s.worstFit) {
			best = pool
		}
	}
	if best < 0 {
		return best
	}
	if s.thin {
		size = 0
	}
	s.free[best] -= size
	s.volumes[claim] = allocation{pool: best, size: size, half: half}
	return best
}

// complete ends what begin has begun, and returns false if there was nothing to end.
func (s *storage) complete(claim types.UID) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	a, ok := s.volumes[claim]
	if !ok || !a.half {
		return false
	}
	a.half = false
	s.volumes[claim] = a
	return true
}

// has checks whether a complete volume is here.
func (s *storage) has(claim types.UID) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	a, ok := s.volumes[claim]
	return ok && !a.half
}

// holds checks whether a volume takes space here.
func (s *storage) holds(claim types.UID) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	_, ok := s.volumes[claim]
	return ok
}

// release gives the space of a volume back, and returns false if it has none.
func (s *storage) release(claim types.UID) bool {
	defer s.call(history.Operation{Kind: history.Delete, Volume: string(claim)})(history.OK, "")
	s.mutex.Lock()
	defer s.mutex.Unlock()
	a, ok := s.volumes[claim]
	if !ok {
		return false
	}
	s.free[a.pool] += a.size
	delete(s.volumes, claim)
	return true
}

// resize adds bytes to a pool, or takes them if less than zero.
func (s *storage) resize(pool int, bytes int64) {
	defer s.call(history.Operation{Kind: history.Resize, Bytes: bytes})(history.OK, strconv.Itoa(pool))
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.free[pool] += bytes
}

// pools returns the free bytes of each pool.
func (s *storage) pools() []int64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.free)
}

// count returns the number of volumes.
func (s *storage) count() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.volumes)
}
