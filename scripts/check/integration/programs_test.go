// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"capacityv2.internal/scripts/ground/testtree"
	"capacityv2.internal/scripts/ground/workspace"
)

// TestProgramsHash changes each program that integration tests start: what has passed with another one was not tested.
func TestProgramsHash(t *testing.T) {
	ws := workspace.Workspace{Work: t.TempDir()}
	hashes := map[string]string{}
	for _, program := range []string{
		"components/kube-apiserver", "components/kube-controller-manager", "components/kube-scheduler", "components/csi-provisioner",
		"components/kubectl", "stock-components/kube-apiserver", "stock-components/kube-scheduler", "stock-components/csi-provisioner", "guide/my-driver", "guide-race/my-driver",
	} {
		testtree.Write(t, ws.Work, map[string]string{program: "a program"})
		hash, err := programsHash(ws)
		if err != nil {
			t.Fatal(err)
		}
		if other := hashes[hash]; other != "" {
			t.Errorf("%s changes nothing after %s", program, other)
		}
		hashes[hash] = program
	}
}
