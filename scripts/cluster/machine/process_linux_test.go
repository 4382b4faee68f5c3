// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"os/exec"
	"slices"
	"testing"
)

// TestEnvironmentFromTheStart asks right after the start: one of ten programs does not have its
// variables yet, and would live on after Stop.
func TestEnvironmentFromTheStart(t *testing.T) {
	for i := range 200 {
		cmd := exec.Command("sleep", "60")
		cmd.Env = []string{"A=b"}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		got := environment(fmt.Sprintf("/proc/%d", cmd.Process.Pid))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if !slices.Equal(got, []string{"A=b", ""}) {
			t.Fatalf("process %d: %q", i, got)
		}
	}
}
