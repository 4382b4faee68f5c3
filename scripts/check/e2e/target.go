// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"

	"capacityv2.internal/scripts/check/failswithout"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
)

// GateOn is the target with the change; failswithout.Targets are those without.
const (
	GateOn  = "gate-on"
	GateOff = "gate-off"
	Stock   = "stock"
)

// Targets are the clusters that specs run on.
var Targets = append([]string{GateOn}, failswithout.Targets...)

// Target returns the target with a name, which may be empty.
func Target(name string) (string, error) {
	if name == "" {
		name = GateOn
	}
	if !slices.Contains(Targets, name) {
		return "", run.Refuse("TARGET="+name, strings.Join(Targets, ", ")+", or nothing", "make e2e TARGET="+GateOff)
	}
	return name, nil
}

// Gates is the value of FEATURE_GATES on a target. The stock components do not know our gates.
func Gates(list workspace.Gates, target string) string {
	var values []string
	for gate := range strings.SplitSeq(list.Enabled(), ",") {
		name, _, _ := strings.Cut(gate, "=")
		ours := slices.Contains(list.Ours(), name)
		switch {
		case ours && target == Stock:
		case ours && target == GateOff:
			values = append(values, name+"=false")
		default:
			values = append(values, gate)
		}
	}
	return strings.Join(values, ",")
}
