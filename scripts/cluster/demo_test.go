// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"testing"

	"capacityv2.internal/scripts/cluster/local"
	"capacityv2.internal/scripts/ground/workspace"
)

// TestDemonstrationAroundProxy: the cluster is on this machine, whatever proxy the user has.
func TestDemonstrationAroundProxy(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:9")
	env := demonstration(t.Context(), workspace.Workspace{}, local.Status{Kubeconfig: "/my k"}, "x", "y").Env
	if !slices.Contains(env, "NO_PROXY=*") || !slices.Contains(env, "KUBECONFIG=/my k") {
		t.Errorf("the demonstration has %q", env)
	}
}
