package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"capacityv2.internal/scripts/machine"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/workspace"
)

// stopTime is how long upstream's script gets to end its components.
const stopTime = 45 * time.Second

// Down ends the cluster and takes away all that it made outside the work folder.
// Without a cluster it says so and does nothing. The logs stay.
func Down(ctx context.Context, ws workspace.Workspace, s *progress.Step) error {
	st, err := loadState(ws)
	if err != nil {
		return err
	}
	if st == nil {
		s.Sayf("no cluster runs from %s", ws.Cluster())
		return nil
	}
	if st.Starter.Alive() {
		return progress.Refuse(fmt.Sprintf("make up (pid %d) is at work", st.Starter.PID), "a cluster that is up, or none", "wait for it, or end it, which takes away what it started")
	}
	if err := takeDown(ctx, ws, s.Log); err != nil {
		return err
	}
	s.Sayf("nothing of it is left but its logs: %s", placesOf(ws).logs())
	if st.Mode == ModeHost {
		s.Sayf("your container runtime may still list pods that have ended (crictl rmp --all)")
	}
	return nil
}

// takeDown undoes what the state file records, in the reverse order of making,
// and removes the file last: what fails can be tried again.
func takeDown(ctx context.Context, ws workspace.Workspace, log io.Writer) error {
	st, err := loadState(ws)
	if st == nil || err != nil {
		return err
	}
	if st.Mode == ModeHost {
		removePods(ctx, st, log)
	}
	var errs []error
	for _, p := range st.Processes {
		errs = append(errs, p.Stop(ctx, stopTime))
	}
	if err := errors.Join(errs...); err != nil {
		return err // what they still use cannot be removed
	}
	if st.Mode == ModeHost {
		if err := cleanHost(st); err != nil {
			return err // what is mounted must not be removed with the folders
		}
	}
	if err := machine.DetachLoops(placesOf(ws).shared()); err != nil {
		return err // they would keep the room of the volumes
	}
	errs = append(errs, removeLink(st.Link))
	for _, g := range st.Cgroups {
		// The kernel ends the last processes a moment after their parent.
		var err error
		machine.WaitUntil(ctx, 10*time.Second, func() bool { err = machine.RemoveGroup(g); return err == nil })
		errs = append(errs, err)
	}
	for file, content := range st.Settings {
		errs = append(errs, os.WriteFile(file, []byte(content), 0o644))
	}
	for _, t := range st.Trees {
		errs = append(errs, os.RemoveAll(t))
	}
	if !st.others() { // removing a folder unmounts it in their nodes
		for _, f := range slices.Backward(st.Folders) {
			_ = os.Remove(f) // not empty: somebody else uses it by now
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return removeOwn(ws)
}

// removeLink removes the host's end of the nodes' network, if there is one.
func removeLink(link string) error {
	if link == "" {
		return nil
	}
	return machine.RemoveLink(link)
}

// removeOwn removes the cluster's folder but for the logs, the state file last.
func removeOwn(ws workspace.Workspace) error {
	p := placesOf(ws)
	entries, err := os.ReadDir(ws.Cluster())
	if err != nil {
		return err
	}
	for _, e := range entries {
		full := filepath.Join(ws.Cluster(), e.Name())
		if full == p.logs() || full == statePath(ws) {
			continue
		}
		if err := os.RemoveAll(full); err != nil {
			return err
		}
	}
	return os.Remove(statePath(ws))
}
