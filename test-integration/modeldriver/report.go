// SPDX-License-Identifier: Apache-2.0

package modeldriver

import (
	"context"
	"slices"
)

// Numbers are what a driver says of a segment, in bytes. A maximum is left out if it is nil.
type Numbers struct {
	Capacity int64
	Maximum  *int64
	Pools    []int64
}

// Report is what a driver says of its pools.
type Report func(pools []int64) Numbers

// Everything is what a driver says that knows the field for pools.
func Everything(pools []int64) Numbers {
	return Numbers{Capacity: sum(pools), Maximum: new(slices.Max(pools)), Pools: pools}
}

// SumAndPools leaves out how large a volume can be.
func SumAndPools(pools []int64) Numbers { return Numbers{Capacity: sum(pools), Pools: pools} }

// SumAndLargest is for drivers that do not know the field for pools, as are all below.
func SumAndLargest(pools []int64) Numbers {
	return Numbers{Capacity: sum(pools), Maximum: new(slices.Max(pools))}
}

// Sum says what is free, whatever its pieces are.
func Sum(pools []int64) Numbers { return Numbers{Capacity: sum(pools)} }

// Largest says that the largest pool is all that there is.
func Largest(pools []int64) Numbers { return Numbers{Capacity: slices.Max(pools)} }

// SumAndLimit has a limit that does not depend on what is free.
func SumAndLimit(bytes int64) Report {
	return func(pools []int64) Numbers { return Numbers{Capacity: sum(pools), Maximum: &bytes} }
}

func sum(pools []int64) int64 {
	var total int64
	for _, pool := range pools {
		total += pool
	}
	return total
}

// getCapacity is what the driver answers for a segment.
func (d *Driver) getCapacity(ctx context.Context, segment int) (Numbers, error) {
	d.calls.Add(1)
	numbers := d.Report(d.shown(segment))
	if d.BeforeAnswer != nil {
		return numbers, d.BeforeAnswer(ctx)
	}
	return numbers, nil
}
