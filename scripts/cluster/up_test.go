// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
)

// TestRequireBuildDisk checks that a full disk does not keep programs from running that were built before.
func TestRequireBuildDisk(t *testing.T) {
	const tooMuch = 1 << 40
	cache := filepath.Join(t.TempDir(), "cache")
	t.Setenv("GOCACHE", cache)
	ws := workspace.Workspace{Work: t.TempDir()}
	if err := os.MkdirAll(ws.Components(), 0o755); err != nil {
		t.Fatal(err)
	}
	programs := []string{"kube-apiserver", "kube-scheduler"}
	if err := requireBuildDisk(t.Context(), ws, programs, 0); err != nil {
		t.Error(err)
	}
	for _, program := range programs {
		if err := requireBuildDisk(t.Context(), ws, programs, tooMuch); !run.IsRefusal(err) || !strings.Contains(err.Error(), filepath.Dir(cache)) {
			t.Errorf("without %s: got %v, want a refusal that names Go's cache", program, err)
		}
		if err := os.WriteFile(filepath.Join(ws.Components(), program), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := requireBuildDisk(t.Context(), ws, programs, tooMuch); err != nil {
		t.Error(err)
	}
}
