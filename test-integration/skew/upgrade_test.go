// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"fmt"
	"testing"

	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// upgrade is what runs on one etcd, one after the other, all programs of one kind. It goes back to
// stock at once, and by way of the gate off.
var upgrade = []kind{stock, off, on, stock, on, off, stock, on}

// TestUpgradeAndBack has whole sets of programs follow each other. What is stored before is read
// after, and each set has to do what it does on an etcd of its own.
func TestUpgradeAndBack(t *testing.T) {
	steps := upgrade
	if !*allFlag {
		steps = []kind{on, off, on}
	}
	t.Cleanup(func() { results.write(t) })
	t.Parallel()
	tCtx := ktesting.Init(t)
	storage := clustertest.NewStorage()
	var s stored
	for i, want := range expectSteps(steps) {
		// A failed step makes the next ones pointless.
		if !tCtx.Run(fmt.Sprintf("%d-%s", i+1, want.kind), func(tCtx ktesting.TContext) { s.step(tCtx, storage, i+1, want) }) {
			return
		}
	}
}

// step runs one set of programs.
func (s *stored) step(tCtx ktesting.TContext, storage *clustertest.Storage, number int, expected step) {
	tCtx.Helper()
	k := expected.kind
	server := startServer(tCtx, k, storage)
	defer server.Stop()
	if s.world == nil {
		s.world = newWorld(tCtx, server, server)
	}
	s.world.writer, s.world.reader = server, server
	w := s.world.in(tCtx)
	seen := step{kind: k, published: expected.published}
	seen.quiet, seen.written = s.readFields(w, expected)
	w.createDriver()
	programs := components{scheduler: startScheduler(w.users, k), manager: startManager(w.users, k)}

	all := set{writer: k, reader: k, scheduler: k, manager: k, provisioner: k}
	want := expect(all)
	got := w.cell(all, fmt.Sprintf("class-step-%d", number), programs, func() { seen.confirmation = s.use(w, number, expected) })
	if got != want {
		w.users.Errorf("%s: got %+v, want %+v", all, got, want)
	}
	s.expectVolumes(w)
	s.writeFields(w, k)
	results.step(seen.row(number))
	for _, p := range programs {
		p.Stop(tCtx)
	}
}
