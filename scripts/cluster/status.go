package cluster

import (
	"errors"
	"os"
	"path/filepath"

	"capacityv2.internal/scripts/workspace"
)

// Status is what is known of the cluster.
type Status struct {
	Running bool
	Mode    Mode
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
	// Group is how the control groups of the containers of its nodes begin.
	Group string
}

// StatusOf tells about the cluster of the workspace. Running is false when it was
// never ready or has ended.
func StatusOf(ws workspace.Workspace) (Status, error) {
	st, err := loadState(ws)
	if st == nil || err != nil {
		return Status{}, err
	}
	s := Status{Running: st.Ready && st.alive(), Mode: st.Mode, Kubeconfig: st.Kubeconfig, Gates: st.Gates, Components: st.Components, KubectlCache: cacheOf(st), Group: st.group()}
	if s.Running {
		s.Nodes = st.Nodes
	}
	return s, nil
}

// Running reports whether any process of a cluster of this workspace lives.
func Running(ws workspace.Workspace) (bool, error) {
	st, err := loadState(ws)
	return st != nil && st.alive(), err
}

// Recorded reports whether there is something of a cluster to take away: it runs, or its
// processes ended without make down.
func Recorded(ws workspace.Workspace) (bool, error) {
	st, err := loadState(ws)
	return st != nil, err
}

// Show prints the kubeconfig, the gates, and what to try, as lines to paste.
func Show(ws workspace.Workspace, printf func(string, ...any)) error {
	s, err := StatusOf(ws)
	if err != nil {
		return err
	}
	if !s.Running {
		return errors.New("no cluster runs")
	}
	kubectl := relative(ws.Root, filepath.Join(s.Components, "kubectl"))
	printf("\nthe cluster is up: %s\n", s.Mode.Describe(s.Nodes))
	printf("  kubeconfig     %s\n", relative(ws.Root, s.Kubeconfig))
	printf("  feature gates  %s\n", s.Gates)
	printf("  logs           %s\n", relative(ws.Root, placesOf(ws).logs()))
	printf("\nTry, in %s:\n", ws.Root)
	printf("  export KUBECONFIG=$PWD/%s KUBECACHEDIR=$PWD/%s\n", relative(ws.Root, s.Kubeconfig), relative(ws.Root, s.KubectlCache))
	if os.Getenv("HTTPS_PROXY") != "" || os.Getenv("https_proxy") != "" {
		printf("  export NO_PROXY=\"*\"   # the cluster is on this machine\n")
	}
	printf("  %s apply -f docs/examples/three-pools.yaml\n", kubectl)
	printf("  %s get csistoragecapacities --all-namespaces --output wide\n", kubectl)
	printf("  %s explain csistoragecapacity.availableCapacities\n", kubectl)
	printf("make down ends it.\n\n")
	return nil
}

func relative(root, path string) string {
	if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
