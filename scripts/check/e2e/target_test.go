// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"capacityv2.internal/scripts/ground/workspace"
)

func TestTargets(t *testing.T) {
	list := workspace.Gates{Gates: []workspace.Gate{
		{Name: "Ours", Ours: true, Enabled: true}, {Name: "Needed", Enabled: true}, {Name: "Other"},
	}}
	for target, want := range map[string]string{
		"":         "Ours=true,Needed=true",
		"gate-on":  "Ours=true,Needed=true",
		"gate-off": "Ours=false,Needed=true",
		"stock":    "Needed=true",
	} {
		name, err := Target(target)
		if err != nil {
			t.Fatal(err)
		}
		if got := Gates(list, name); got != want {
			t.Errorf("%q: got %s, want %s", target, got, want)
		}
	}
	if _, err := Target("off"); err == nil {
		t.Error("an unknown target passes")
	}
}
