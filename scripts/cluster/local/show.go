// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"os"
	"path/filepath"

	"capacityv2.internal/scripts/ground/workspace"
)

// Show prints the kubeconfig, the gates, and what to try, as lines to paste.
func Show(ws workspace.Workspace, printf func(string, ...any)) error {
	s, err := StatusOf(ws)
	if err != nil {
		return err
	}
	if !s.Running {
		return errors.New("no cluster runs")
	}
	printf("\nthe cluster is up: %s\n", s.Mode.Describe(s.Nodes))
	printf("  kubeconfig     %s\n", relative(ws.Root, s.Kubeconfig))
	printf("  feature gates  %s\n", s.Gates)
	printf("  logs           %s\n", relative(ws.Root, placesOf(ws).logs()))
	printf("\nTry, in %s:\n", ws.Root)
	printf("  export KUBECONFIG=$PWD/%s KUBECACHEDIR=$PWD/%s\n", relative(ws.Root, s.Kubeconfig), relative(ws.Root, s.KubectlCache))
	printf("  export PATH=$PWD/%s:$PATH\n", relative(ws.Root, filepath.Dir(s.Kubectl())))
	if os.Getenv("HTTPS_PROXY") != "" || os.Getenv("https_proxy") != "" {
		printf("  export NO_PROXY=\"*\"   # the cluster is on this machine\n")
	}
	printf("  kubectl apply -f docs/examples/three-pools.yaml\n")
	printf("  kubectl get csistoragecapacities --all-namespaces --output wide\n")
	printf("  kubectl explain csistoragecapacity.availableCapacities\n")
	if s.Nodes == 0 {
		printf("  kubectl apply -f docs/examples/node1.yaml   # a node without a kubelet\n")
	}
	printf("  kubectl apply -f docs/examples/too-large.yaml\n")
	printf("  kubectl describe pod too-large\n")
	printf("make down ends it.\n\n")
	return nil
}

func relative(root, path string) string {
	if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
