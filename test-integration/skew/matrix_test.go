// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// matrix is all combinations of kinds with one API server.
func matrix() []set {
	var all []set
	for _, server := range kinds {
		for _, s := range kinds {
			for _, m := range kinds {
				for _, p := range kinds {
					all = append(all, set{writer: server, reader: server, scheduler: s, manager: m, provisioner: p})
				}
			}
		}
	}
	return all
}

// emulations are combinations with a scheduler that is emulated.
func emulations() []set {
	var all []set
	for _, server := range kinds {
		all = append(all, set{writer: server, reader: server, scheduler: emulated, manager: off, provisioner: on})
	}
	return all
}

// often are combinations that are met often, which run for every change. Of the stock programs, they
// need API server and scheduler only.
var often = []set{
	{writer: on, reader: on, scheduler: stock, manager: off, provisioner: off},  // an upgrade has begun
	{writer: on, reader: on, scheduler: stock, manager: off, provisioner: on},   // the scheduler was forgotten, or went back first
	{writer: on, reader: on, scheduler: on, manager: off, provisioner: on},      // all that the series changes
	{writer: stock, reader: stock, scheduler: on, manager: on, provisioner: on}, // the API server went back first
	{writer: off, reader: off, scheduler: on, manager: off, provisioner: off},   // the gate is off there
	{writer: on, reader: on, scheduler: emulated, manager: off, provisioner: on},
}

// TestMatrix runs all combinations of kinds, and those with a scheduler that is emulated. An API
// server is started once, and the others are exchanged beside it.
func TestMatrix(t *testing.T) {
	selected := often
	if *allFlag {
		selected = slices.Concat(matrix(), emulations())
	}
	t.Cleanup(func() { results.write(t) })
	for _, server := range kinds {
		t.Run("api-"+string(server), func(t *testing.T) {
			t.Parallel()
			tCtx := ktesting.Init(t)
			api := startServer(tCtx, server, clustertest.NewStorage())
			newWorld(tCtx, api, api).runAll(slices.DeleteFunc(slices.Clone(selected), func(s set) bool { return s.writer != server }))
		})
	}
}

// runAll runs sets beside the API servers. Those with the same scheduler, and with the same
// controller-manager, have to follow each other.
func (w *world) runAll(sets []set) {
	n := 0
	inTurn(w, sets, "scheduler", func(s set) kind { return s.scheduler }, func(w *world, sets []set) {
		programs := components{scheduler: startScheduler(w.users, sets[0].scheduler)}
		inTurn(w, sets, "manager", func(s set) kind { return s.manager }, func(w *world, sets []set) {
			programs[manager] = startManager(w.users, sets[0].manager)
			inTurn(w, sets, "provisioner", func(s set) kind { return s.provisioner }, func(w *world, sets []set) {
				n++
				w.run(sets[0], fmt.Sprintf("class-%d", n), programs)
			})
			programs[manager].Stop(w.users.TContext.TContext)
		})
		programs[scheduler].Stop(w.users.TContext.TContext)
	})
}

// inTurn runs a subtest for all sets whose programs with a role are of one kind.
func inTurn(w *world, sets []set, role string, of func(set) kind, run func(w *world, sets []set)) {
	for _, k := range append(slices.Clone(kinds), emulated) {
		some := slices.DeleteFunc(slices.Clone(sets), func(s set) bool { return of(s) != k })
		if len(some) > 0 {
			w.users.TContext.TContext.Run(role+"-"+string(k), func(tCtx ktesting.TContext) { run(w.in(tCtx), some) })
		}
	}
}

// run compares what comes out of a set with what has to, and records it.
func (w *world) run(s set, class string, programs components) {
	w.users.Helper()
	got, want := w.cell(s, class, programs, nil), expect(s)
	if got != want {
		w.users.Errorf("%s: got %+v, want %+v", s, got, want)
	}
	results.add(s, got)
}
