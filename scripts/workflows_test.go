// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var pinnedAction = regexp.MustCompile(`^([\w-]+/[\w-]+)@([0-9a-f]{40} # v\d+\.\d+\.\d+)$`)

// TestActionsArePinned checks that actions of others are pinned by commit, each everywhere by the same.
func TestActionsArePinned(t *testing.T) {
	workflows, _ := filepath.Glob("../.github/workflows/*.yaml")
	actions, _ := filepath.Glob("../.github/actions/*/action.yaml")
	pins := map[string]string{}
	for _, path := range slices.Concat(workflows, actions) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)uses: (.*)$`).FindAllStringSubmatch(string(content), -1) {
			if strings.HasPrefix(m[1], "./") {
				continue
			}
			pin := pinnedAction.FindStringSubmatch(m[1])
			if pin == nil {
				t.Errorf("%s uses %s, want a commit, and its version in a comment", path, m[1])
				continue
			}
			if other := pins[pin[1]]; other != "" && other != pin[2] {
				t.Errorf("%s uses %s at %s, another workflow at %s", path, pin[1], pin[2], other)
			}
			pins[pin[1]] = pin[2]
		}
	}
	if len(pins) < 4 {
		t.Errorf("found only %v", pins)
	}
}
