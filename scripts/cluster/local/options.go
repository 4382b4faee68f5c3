// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"strconv"

	"capacityv2.internal/scripts/ground/run"
)

// Mode is how much of a cluster runs.
type Mode string

const (
	// ModeFull is the control plane and its nodes in namespaces of their own.
	ModeFull Mode = "full"
	// ModeControlPlane has no node: no kubelet, no kube-proxy, no pods that run.
	ModeControlPlane Mode = "control-plane"
)

// Describe says in a few words what runs in the mode.
func (m Mode) Describe(nodes int) string {
	if m == ModeFull {
		return "control plane and " + countNodes(nodes) + ", in namespaces of their own"
	}
	return "the control plane alone, without a kubelet: pods are scheduled, but do not run"
}

// Options are the caller's wishes.
type Options struct {
	// Gates is the value of FEATURE_GATES, "A=true,B=false".
	Gates string
	// Mode is a [Mode]. Empty means the most that the machine can do.
	Mode string
	// Nodes is the number of nodes. Empty means DefaultNodes, or as many as the
	// cluster has that runs already.
	Nodes        string
	DefaultNodes int
	// Components is the folder of the components. Empty means the workspace's own.
	Components string
}

// chooseMode returns the mode for the wishes on a machine where obstacle is what
// keeps a node from running ("" means nothing does), and a notice for the user
// when it is less than the default.
func chooseMode(o Options, obstacle string) (m Mode, notice string, err error) {
	switch wish := Mode(o.Mode); {
	case wish != "" && wish != ModeFull && wish != ModeControlPlane:
		return "", "", run.Refuse("CLUSTER_MODE="+o.Mode, "full, control-plane, or nothing", "make up CLUSTER_MODE=")
	case wish == ModeControlPlane:
		return ModeControlPlane, "", nil
	case obstacle == "":
		return ModeFull, "", nil
	case wish == ModeFull:
		return "", "", run.Refuse("no node can run here: "+obstacle,
			"root on Linux, with the right to make namespaces and control groups", "make up CLUSTER_MODE=control-plane")
	}
	return ModeControlPlane, "no node can run here (" + obstacle + "), so only the control plane is started", nil
}

// maxNodes is what a small machine can run.
const maxNodes = 9

// chooseNodes returns how many nodes run in the mode. Without a wish, a cluster
// that runs already, with as many nodes as running says, is the one that is meant.
func chooseNodes(o Options, m Mode, running int) (int, error) {
	wish := 0
	if o.Nodes != "" {
		n, err := strconv.Atoi(o.Nodes)
		if err != nil || n < 1 || n > maxNodes {
			return 0, run.Refuse("NODES="+o.Nodes, fmt.Sprintf("a number from 1 to %d, or nothing", maxNodes), "make up NODES=3")
		}
		wish = n
	}
	switch {
	case wish > 0 && Mode(o.Mode) == ModeControlPlane:
		return 0, run.Refuse("NODES="+o.Nodes+" with CLUSTER_MODE="+o.Mode, "one of the two: this mode has no node", "make up NODES=")
	case m == ModeControlPlane:
		return 0, nil
	case wish > 0:
		return wish, nil
	case running > 0:
		return running, nil
	}
	return max(o.DefaultNodes, 1), nil
}

// countNodes says how many nodes there are.
func countNodes(n int) string {
	if n == 1 {
		return "one node"
	}
	return fmt.Sprintf("%d nodes", n)
}
