// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"slices"
	"testing"

	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// twoServers are the combinations of two API servers of different kinds: provisioner and driver
// use one, and all others the other one.
func twoServers() []set {
	var all []set
	for _, writer := range kinds {
		for _, reader := range kinds {
			if writer == reader {
				continue
			}
			for _, s := range kinds {
				all = append(all, set{writer: writer, reader: reader, scheduler: s, manager: off, provisioner: on})
			}
		}
	}
	return all
}

// TestTwoServers runs two API servers of different kinds on one etcd, as while a control plane
// with several of them is being upgraded.
func TestTwoServers(t *testing.T) {
	selected := twoServers()
	if !*allFlag {
		selected = slices.DeleteFunc(selected, func(s set) bool { return s.scheduler != on || s.writer == off || s.reader == off })
	}
	t.Cleanup(func() { results.write(t) })
	for _, kinds := range [][2]kind{{stock, on}, {off, on}, {stock, off}} {
		some := slices.DeleteFunc(slices.Clone(selected), func(s set) bool { return !slices.Contains(kinds[:], s.writer) || !slices.Contains(kinds[:], s.reader) })
		if len(some) == 0 {
			continue
		}
		t.Run(string(kinds[0]+"-beside-"+kinds[1]), func(t *testing.T) {
			t.Parallel()
			tCtx := ktesting.Init(t)
			storage := clustertest.NewStorage()
			a, b := startServer(tCtx, kinds[0], storage), startServer(tCtx, kinds[1], storage)
			for _, pair := range [][2]*clustertest.Server{{a, b}, {b, a}} {
				writer := kinds[0]
				if pair[0] == b {
					writer = kinds[1]
				}
				tCtx.Run("writer-"+string(writer), func(tCtx ktesting.TContext) {
					newWorld(tCtx, pair[0], pair[1]).runAll(slices.DeleteFunc(slices.Clone(some), func(s set) bool { return s.writer != writer }))
				})
			}
		})
	}
}
