// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"capacityv2.internal/scripts/cluster/machine"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
)

// stopTime is how long upstream's script gets to end its components.
const stopTime = 45 * time.Second

// Down ends the cluster and takes away all that it made outside the work folder.
// Without a cluster it says so and does nothing. With an ID, it ends no other cluster. The logs stay.
func Down(ctx context.Context, ws workspace.Workspace, id string, s *run.Step) error {
	held, err := lock(ws)
	if err != nil {
		return err
	}
	defer held.Close()
	st, err := loadState(ws)
	if err != nil {
		return err
	}
	if st == nil {
		s.Sayf("no cluster runs from %s", ws.Cluster())
		return nil
	}
	if id != "" && st.ID != id {
		s.Sayf("the cluster that runs from %s was started by somebody else: it is left alone", ws.Cluster())
		return nil
	}
	if err := st.takeDown(ctx); err != nil {
		return err
	}
	s.Sayf("nothing of it is left but its logs: %s", placesOf(ws).logs())
	return nil
}

// takeDown takes away what belongs to the state, in the reverse order of making, and removes the state
// file last: what fails can be tried again.
func (st *state) takeDown(ctx context.Context) error {
	if err := machine.Stop(ctx, st.ID, stopTime); err != nil {
		return err // what they still use cannot be removed
	}
	if err := machine.DetachLoops(placesOf(st.ws).shared()); err != nil {
		return err // they would keep the room of the volumes
	}
	if st.Mode == ModeFull {
		if err := errors.Join(machine.RemoveLink(st.link()), machine.RemoveGroups(ctx, st.group())); err != nil {
			return err
		}
	}
	if !st.others() { // removing a folder unmounts it in their nodes
		for _, f := range slices.Backward(st.Folders) {
			_ = os.Remove(f) // not empty: somebody else uses it by now
		}
	}
	return st.removeOwn()
}

// removeOwn removes the cluster's folder but for the logs, the state file last.
func (st *state) removeOwn() error {
	entries, err := filepath.Glob(filepath.Join(st.ws.Cluster(), "*"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e == placesOf(st.ws).logs() || e == statePath(st.ws) {
			continue
		}
		if err := os.RemoveAll(e); err != nil {
			return err
		}
	}
	return os.RemoveAll(statePath(st.ws))
}
