package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"capacityv2.internal/scripts/files"
	"capacityv2.internal/scripts/machine"
	"capacityv2.internal/scripts/workspace"
)

// state is what `up` made and `down` has to take away. It is written before the
// thing itself is made, so that an interrupted `up` can be cleaned up as well.
type state struct {
	// ID marks the names of interfaces and control groups.
	ID string `json:"id"`
	// Fingerprint stands for the components and settings that the cluster runs.
	Fingerprint string `json:"fingerprint"`
	Mode        Mode   `json:"mode"`
	// Nodes is 0 where only the control plane runs.
	Nodes   int       `json:"nodes,omitempty"`
	Gates   string    `json:"gates"`
	Started time.Time `json:"started"`
	// Ready is false while the cluster comes up.
	Ready      bool   `json:"ready"`
	Kubeconfig string `json:"kubeconfig"`
	Components string `json:"components"`
	// Starter is the `up` that is at work; zero when it is done.
	Starter machine.Process `json:"starter,omitzero"`
	// Processes are ended in this order.
	Processes []machine.Process `json:"processes,omitempty"`
	// Cgroups are folders in the control group file systems, with all below.
	Cgroups []string `json:"cgroups,omitempty"`
	// Folders were made on the host and are removed if they are empty.
	Folders []string `json:"folders,omitempty"`
	// Trees were made on the host by the components, and are removed whole.
	Trees []string `json:"trees,omitempty"`
	// Settings are kernel settings (files in /proc/sys, or of control groups)
	// with the content that they had before.
	Settings map[string]string `json:"settings,omitempty"`
	// KeepRules is set where the host had packet filter rules of Kubernetes.
	KeepRules bool `json:"keepRules,omitempty"`
	// Link is the host's end of the node's network.
	Link string `json:"link,omitempty"`
}

func statePath(ws workspace.Workspace) string { return filepath.Join(ws.Cluster(), "state.json") }

// loadState returns nil when there is no cluster.
func loadState(ws workspace.Workspace) (*state, error) {
	b, err := os.ReadFile(statePath(ws))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	st := &state{}
	if err := json.Unmarshal(b, st); err != nil {
		return nil, fmt.Errorf("%s: %w", statePath(ws), err)
	}
	return st, nil
}

// save replaces the state file in one step: a half-written one would hide what
// has to be taken away.
func (st *state) save(ws workspace.Workspace) error {
	if err := os.MkdirAll(ws.Cluster(), 0o755); err != nil {
		return err
	}
	return files.WriteJSON(statePath(ws), st)
}

// groupPrefix is how the control groups of all clusters begin.
const groupPrefix = "capacityv2-"

// group is how the control groups of the nodes begin: that of the first is it.
func (st *state) group() string { return "/" + groupPrefix + st.ID }

// groupsAtTop is a variable for tests: what else runs on the machine is not theirs.
var groupsAtTop = machine.Groups

// others reports whether a cluster of another checkout runs: its nodes have mounted
// their folders over the same ones of the host.
func (st *state) others() bool {
	return slices.ContainsFunc(groupsAtTop(groupPrefix), func(name string) bool {
		return !strings.HasPrefix(name, groupPrefix+"probe-") && !strings.HasPrefix("/"+name, st.group())
	})
}

// alive reports whether any process of the cluster lives.
func (st *state) alive() bool {
	for _, p := range st.Processes {
		if p.Alive() {
			return true
		}
	}
	return false
}

// set remembers what to write to a kernel setting at the end. The first content
// stands: a later one is ours.
func (st *state) set(file, content string) {
	if st.Settings == nil {
		st.Settings = map[string]string{}
	}
	if _, ok := st.Settings[file]; !ok {
		st.Settings[file] = content
	}
}

// record is the state as something that is told what will be made on the machine.
type record struct {
	ws workspace.Workspace
	st *state
}

func (r record) Group(dir string) error {
	r.st.Cgroups = append(r.st.Cgroups, dir)
	return r.st.save(r.ws)
}

func (r record) Setting(file, content string) error {
	r.st.set(file, content)
	return r.st.save(r.ws)
}
