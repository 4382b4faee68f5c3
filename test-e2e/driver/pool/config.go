package pool

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Pool has a folder and a size of its own. No volume spans two pools.
type Pool struct {
	// Name is what parameters of storage classes call the pool.
	Name string
	// Size is how many bytes the volumes of the pool may have together. Volumes that
	// exist stay when it gets smaller.
	Size resource.Quantity
}

// Parse returns the pools with names and sizes, sorted by name.
func Parse(sizes map[string]string) (pools []Pool, err error) {
	if len(sizes) == 0 {
		return nil, fmt.Errorf("no pools; expected at least one, such as fast=100Gi")
	}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		size, err := resource.ParseQuantity(sizes[name])
		if err != nil || size.Sign() <= 0 {
			return nil, fmt.Errorf("pool %s: size %q; expected one that is positive, such as 100Gi", name, sizes[name])
		}
		if !validName(name) {
			return nil, fmt.Errorf("pool %q: expected a name of letters, digits, and single . - _ between them", name)
		}
		pools = append(pools, Pool{Name: name, Size: size})
	}
	return pools, nil
}
