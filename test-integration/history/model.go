package history

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// state is what one node has. It does not change: steps return another one.
type state struct {
	// free has the bytes that are free, by pool. Nil: the driver has not started.
	free    map[string]int64
	volumes map[string]Place
}

var seed = maphash.MakeSeed()

func (s state) equal(other state) bool {
	return maps.Equal(s.volumes, other.volumes) && maps.Equal(s.free, other.free)
}

// hash is the same for equal states.
func (s state) hash() uint64 {
	var sum uint64
	for volume, place := range s.volumes {
		sum ^= maphash.Comparable(seed, volume) + maphash.Comparable(seed, place)
	}
	return sum
}

func (s state) String() string {
	var pools []string
	for _, pool := range slices.Sorted(maps.Keys(s.free)) {
		pools = append(pools, fmt.Sprintf("%s: %s free", pool, size(s.free[pool])))
	}
	return strings.Join(pools, ", ")
}

// put returns the state with a volume more.
func (s state) put(volume string, place Place) state {
	next := state{maps.Clone(s.free), maps.Clone(s.volumes)}
	next.free[place.Pool] -= place.Bytes
	next.volumes[volume] = place
	return next
}

// remove returns the state without a volume.
func (s state) remove(volume string) state {
	place, ok := s.volumes[volume]
	if !ok {
		return s
	}
	next := state{maps.Clone(s.free), maps.Clone(s.volumes)}
	next.free[place.Pool] += place.Bytes
	delete(next.volumes, volume)
	return next
}

// roomFor returns the pools that have room for the volume of an operation.
func (s state) roomFor(o Operation) []string {
	var pools []string
	for pool, free := range s.free {
		if free >= o.Bytes && (len(o.Allowed) == 0 || slices.Contains(o.Allowed, pool)) {
			pools = append(pools, pool)
		}
	}
	slices.Sort(pools)
	return pools
}

// next returns the states that are possible after an operation, none if it cannot have ended so.
// mayRefuse is whether volumes may be sent to nodes that have no room.
func (s state) next(o Operation, mayRefuse bool) []state {
	switch o.Kind {
	case Start:
		return s.start(o)
	case Delete:
		if o.Result == Unknown {
			return []state{s, s.remove(o.Volume)}
		}
		return []state{s.remove(o.Volume)}
	}
	place, exists := s.volumes[o.Volume]
	room := s.roomFor(o)
	switch {
	case o.Result == Refused && (exists || len(room) > 0 || !mayRefuse):
		return nil
	case o.Result == Refused:
		return []state{s}
	case exists && o.Result == OK && o.Pool != "" && o.Pool != place.Pool:
		return nil
	case exists:
		return []state{s}
	}
	var states []state
	if o.Result == Unknown {
		states = append(states, s)
	}
	for _, pool := range room {
		if o.Pool == "" || o.Pool == pool {
			states = append(states, s.put(o.Volume, Place{pool, o.Bytes}))
		}
	}
	return states
}

// start returns what a driver has that begins, none if a pool has more volumes than fit. One that begins
// again has what it had.
func (s state) start(o Operation) []state {
	next := begun(o)
	if next.overfull() || s.free != nil && !maps.Equal(s.volumes, next.volumes) {
		return nil
	}
	return []state{next}
}

// begun returns what a Start says.
func begun(o Operation) state {
	s := state{map[string]int64{}, map[string]Place{}}
	maps.Copy(s.free, o.Pools)
	maps.Copy(s.volumes, o.Volumes)
	for _, place := range o.Volumes {
		s.free[place.Pool] -= place.Bytes
	}
	return s
}

// overfull returns whether a pool has more volumes than fit.
func (s state) overfull() bool {
	for _, free := range s.free {
		if free < 0 {
			return true
		}
	}
	return false
}

// model is that of one node.
func model(mayRefuse bool) porcupine.Model {
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []any { return []any{state{}} },
		Step: func(now, input, _ any) []any {
			var states []any
			for _, next := range now.(state).next(input.(Operation), mayRefuse) {
				states = append(states, next)
			}
			return states
		},
		Equal:             func(a, b any) bool { return a.(state).equal(b.(state)) },
		Hash:              func(s any) uint64 { return s.(state).hash() },
		DescribeOperation: func(input, _ any) string { return input.(Operation).String() },
		DescribeState:     func(s any) string { return s.(state).String() },
	}
	m := nondeterministic.ToModel()
	m.Partition = partition
	return m
}

// partition returns the operations of each node, by its name.
func partition(all []porcupine.Operation) [][]porcupine.Operation {
	byNode := map[string][]porcupine.Operation{}
	for _, o := range all {
		node := o.Input.(Operation).Node
		byNode[node] = append(byNode[node], o)
	}
	var parts [][]porcupine.Operation
	for _, node := range slices.Sorted(maps.Keys(byNode)) {
		parts = append(parts, byNode[node])
	}
	return parts
}
