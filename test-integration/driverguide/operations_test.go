// SPDX-License-Identifier: Apache-2.0

package driverguide

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/component-helpers/storage/volume"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// TestIsItOn does what docs/how-to/install.md tells operators to do, to see whether the gate is on.
func TestIsItOn(t *testing.T) {
	c := startTooLarge(t, clustertest.Options{})
	c.ExpectNoRoom("too-large", 1)
}

// TestIsItOff checks what that page says of a scheduler with the gate off.
func TestIsItOff(t *testing.T) {
	c := startTooLarge(t, clustertest.Options{GateOff: true})
	c.Eventually(func(context.Context) error {
		for _, claim := range []string{"too-large-1", "too-large-2"} {
			if selected := c.Claim(claim).Annotations[volume.AnnSelectedNode]; selected != "node1" {
				return fmt.Errorf("claim %s was sent to %q, want node1", claim, selected)
			}
		}
		return nil
	})
}

// startTooLarge starts a control plane with the examples of the page.
func startTooLarge(t *testing.T, options clustertest.Options) *clustertest.Cluster {
	t.Helper()
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNode("node1", nil)
	create(c, "../../docs/examples/three-pools.yaml")
	c.WaitForScheduler()
	create(c, "../../docs/examples/too-large.yaml")
	return c
}
