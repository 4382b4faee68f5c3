package cluster

import (
	"fmt"
	"strconv"

	"capacityv2.internal/scripts/progress"
)

// maxNodes is what a small machine can run.
const maxNodes = 9

// chooseNodes returns how many nodes run in the mode. Without a wish, a cluster
// that runs already, with as many nodes as running says, is the one that is meant.
func chooseNodes(o Options, m Mode, running int) (int, error) {
	wish := 0
	if o.Nodes != "" {
		n, err := strconv.Atoi(o.Nodes)
		if err != nil || n < 1 || n > maxNodes {
			return 0, progress.Refuse("NODES="+o.Nodes, fmt.Sprintf("a number from 1 to %d, or nothing", maxNodes), "make up NODES=3")
		}
		wish = n
	}
	switch {
	case wish > 0 && o.Mode == string(ModeControlPlane):
		return 0, progress.Refuse("NODES="+o.Nodes+" with CLUSTER_MODE="+o.Mode, "one of the two: this mode has no node", "make up NODES=")
	case wish > 1 && m == ModeHost:
		return 0, progress.Refuse("NODES="+o.Nodes+" with CONTAINER_RUNTIME_ENDPOINT", "one of the two: a container runtime serves one kubelet",
			"make up CONTAINER_RUNTIME_ENDPOINT= NODES="+o.Nodes)
	case m == ModeControlPlane:
		return 0, nil
	case wish > 0:
		return wish, nil
	case m == ModeHost:
		return 1, nil
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
