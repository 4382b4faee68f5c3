// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os"
	"path/filepath"
	"testing"

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
		path := filepath.Join(ws.Work, program)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("a program"), 0o755); err != nil {
			t.Fatal(err)
		}
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
