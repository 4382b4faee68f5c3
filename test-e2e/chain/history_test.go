package chain

import (
	"math"

	"capacityv2.internal/test-e2e/measure"
)

// refusals is how many volumes may be sent to nodes that have no room. Without the feature, nobody
// promises anything. Where reports confirm volumes, there is none, but for a request of a scheduler that was killed,
// which may arrive late. Where they do not, one decrease may be taken for that of another volume.
func refusals(s setting, v variant) int {
	if v.policy == "" {
		return math.MaxInt
	}
	n := 0
	if s.KillScheduler {
		n++
	}
	if v.provisioner != measure.Patched {
		n++
	}
	return n
}
