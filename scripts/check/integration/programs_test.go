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

// TestProgramsOf: a test gets what it starts, and waits for nothing else.
func TestProgramsOf(t *testing.T) {
	for folder, want := range map[string]int{"scheduling": 2, "publishing": 3, "driverguide": 5, "apifields": 4, "skew": 5} {
		if tasks := ProgramsOf(workspace.Workspace{}, folder); len(tasks) != want {
			t.Errorf("%d tasks build what %s starts, want %d", len(tasks), folder, want)
		}
	}
	if tasks := ProgramsOf(workspace.Workspace{}, "driverguide", "skew"); len(tasks) != 7 {
		t.Errorf("%d tasks build what both start, want all seven", len(tasks))
	}
}
