// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"capacityv2.internal/scripts/cluster/machine"
	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/workspace"
)

// state is what `up` made and `down` has to take away, as far as it cannot be found by
// the ID. It is written before anything is made, so that an interrupted `up` can be
// cleaned up as well.
type state struct {
	// ID is in the names of the link and the control groups, and the mark of the processes.
	ID string `json:"id"`
	// Fingerprint stands for the components and settings that the cluster runs.
	Fingerprint string `json:"fingerprint"`
	Mode        Mode   `json:"mode"`
	// Nodes is 0 where only the control plane runs.
	Nodes int    `json:"nodes,omitempty"`
	Gates string `json:"gates"`
	// Ready is false while the cluster comes up.
	Ready      bool   `json:"ready"`
	Components string `json:"components"`
	// Folders were made on the host and are removed if they are empty.
	Folders []string `json:"folders,omitempty"`

	ws workspace.Workspace
}

func statePath(ws workspace.Workspace) string { return filepath.Join(ws.Cluster(), "state.json") }

// loadState returns nil when there is no cluster.
func loadState(ws workspace.Workspace) (*state, error) {
	st := &state{ws: ws}
	if err := files.ReadJSON(statePath(ws), st); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return st, nil
}

// save replaces the state file in one step: a half-written one would hide what
// has to be taken away.
func (st *state) save() error {
	if err := os.MkdirAll(st.ws.Cluster(), 0o755); err != nil {
		return err
	}
	return files.WriteJSON(statePath(st.ws), st)
}

// willMake records the folders that are about to be made on the host for dir.
func (st *state) willMake(dir string) error {
	st.Folders = append(st.Folders, machine.MissingFolders(dir)...)
	return st.save()
}

// groupPrefix is how the control groups of all clusters begin.
const groupPrefix = "capacityv2-"

// group is how the control groups of the nodes begin: that of the first is it.
func (st *state) group() string { return groupPrefix + st.ID }

// link is the host's end of the nodes' network.
func (st *state) link() string { return "cap-" + st.ID }

// groupsAtTop is a variable for tests: what else runs on the machine is not theirs.
var groupsAtTop = machine.Groups

// others reports whether a cluster of another checkout runs: its nodes have mounted
// their folders over the same ones of the host.
func (st *state) others() bool {
	return slices.ContainsFunc(groupsAtTop(groupPrefix), func(dir string) bool {
		name := filepath.Base(dir)
		return !strings.HasPrefix(name, groupPrefix+"probe-") && !strings.HasPrefix(name, st.group())
	})
}

// lock keeps two verbs from the same cluster.
func lock(ws workspace.Workspace) (*os.File, error) {
	if err := os.MkdirAll(ws.Work, 0o755); err != nil {
		return nil, err
	}
	return machine.Lock(filepath.Join(ws.Work, "cluster.lock"), "another make up or make down is at work on "+ws.Cluster())
}

// Status is what is known of the cluster.
type Status struct {
	// Recorded is that there is something of a cluster to take away, Alive that a process of it lives, Running that it was
	// ready, too.
	Recorded, Alive, Running bool
	Mode                     Mode
	// Nodes is how many nodes the running cluster has.
	Nodes      int
	Kubeconfig string
	// Gates is the value of FEATURE_GATES.
	Gates string
	// Components is the folder of the programs that run, kubectl among them.
	Components string
	// KubectlCache is a folder for kubectl's KUBECACHEDIR, which ends with the
	// cluster.
	KubectlCache string
	// Group is how the control groups of the containers of its nodes begin, Mark a variable that
	// its processes on the host have.
	Group, Mark string
}

// Kubectl is the one that was built with the other components.
func (s Status) Kubectl() string { return filepath.Join(s.Components, "kubectl") }

// Env is for what talks to the cluster, which is on this machine, whatever proxy the user has.
func (s Status) Env() []string {
	return []string{"KUBECONFIG=" + s.Kubeconfig, "KUBECACHEDIR=" + s.KubectlCache, "NO_PROXY=*", "no_proxy=*"}
}

// StatusOf tells about the cluster of the workspace.
func StatusOf(ws workspace.Workspace) (Status, error) {
	st, err := loadState(ws)
	if st == nil || err != nil {
		return Status{}, err
	}
	return st.status(), nil
}

func (st *state) status() Status {
	p := placesOf(st.ws)
	alive := machine.Alive(st.ID)
	s := Status{Recorded: true, Alive: alive, Running: st.Ready && alive, Mode: st.Mode, Kubeconfig: p.kubeconfig(), Gates: st.Gates,
		Components: st.Components, KubectlCache: p.kubectlCache(), Group: "/" + st.group(), Mark: machine.MarkVariable + "=" + st.ID}
	if s.Running {
		s.Nodes = st.Nodes
	}
	return s
}
