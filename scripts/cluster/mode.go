package cluster

import (
	"strings"

	"capacityv2.internal/scripts/node"
	"capacityv2.internal/scripts/progress"
)

// Mode is how much of a cluster runs, and where.
type Mode string

const (
	// ModeFull is the control plane and its nodes in namespaces of their own.
	ModeFull Mode = "full"
	// ModeHost is the control plane and one node on the host itself, with the
	// user's container runtime.
	ModeHost Mode = "host"
	// ModeControlPlane has no node: no kubelet, no kube-proxy, no pods that run.
	ModeControlPlane Mode = "control-plane"
)

// Describe says in a few words what runs in the mode.
func (m Mode) Describe(nodes int) string {
	switch m {
	case ModeFull:
		return "control plane and " + countNodes(nodes) + ", in namespaces of their own"
	case ModeHost:
		return "control plane and one node on this host, with the container runtime that CONTAINER_RUNTIME_ENDPOINT names"
	}
	return "the control plane alone, without a kubelet: pods are scheduled, but do not run"
}

// HasNode reports whether a kubelet runs.
func (m Mode) HasNode() bool { return m != ModeControlPlane }

// Options are the caller's wishes.
type Options struct {
	// Gates is the value of FEATURE_GATES, "A=true,B=false".
	Gates string
	// Mode is "", "full" or "control-plane". Empty means the most that the
	// machine can do.
	Mode string
	// RuntimeEndpoint is the user's container runtime, a unix:// address. Empty
	// means a containerd of ours.
	RuntimeEndpoint string
	// Nodes is the number of nodes. Empty means DefaultNodes, or as many as the
	// cluster has that runs already.
	Nodes        string
	DefaultNodes int
	// Components is the folder of the components. Empty means the workspace's own.
	Components string
	// Images are what every node has beside the image of pause.
	Images []node.Image
}

// chooseMode returns the mode for the wishes on a machine where obstacle is what
// keeps a node from running ("" means nothing does), and a notice for the user
// when it is less than the default.
func chooseMode(o Options, obstacle string) (m Mode, notice string, err error) {
	if o.Mode != "" && o.Mode != string(ModeFull) && o.Mode != string(ModeControlPlane) {
		return "", "", progress.Refuse("CLUSTER_MODE="+o.Mode, "full, control-plane, or nothing",
			"make up CLUSTER_MODE=")
	}
	if o.RuntimeEndpoint != "" && !strings.HasPrefix(o.RuntimeEndpoint, "unix:///") {
		return "", "", progress.Refuse("CONTAINER_RUNTIME_ENDPOINT="+o.RuntimeEndpoint, "unix:///PATH/OF/A/SOCKET",
			"make up CONTAINER_RUNTIME_ENDPOINT=unix:///run/containerd/containerd.sock")
	}
	switch {
	case o.Mode == string(ModeControlPlane):
		return ModeControlPlane, "", nil
	case obstacle == "" && o.RuntimeEndpoint != "":
		return ModeHost, "", nil
	case obstacle == "":
		return ModeFull, "", nil
	case o.Mode == string(ModeFull):
		return "", "", progress.Refuse("no node can run here: "+obstacle,
			"root on Linux, with the right to make namespaces and control groups", "make up CLUSTER_MODE=control-plane")
	}
	return ModeControlPlane, "no node can run here (" + obstacle + "), so only the control plane is started", nil
}
