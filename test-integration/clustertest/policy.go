package clustertest

import (
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/apis/config"
)

var policies = []config.CapacityReservationPolicy{config.InFlightCapacityReservation, config.ObjectCapacityReservation}

// ForEachPolicy runs a test for each policy of capacityReservation, in parallel with other
// tests: a control plane mostly waits. Where the policies differ, the test says so. It
// must not read metrics or change feature gates, which are global in a process.
func ForEachPolicy(t *testing.T, test func(t *testing.T, options Options)) {
	t.Helper()
	t.Parallel()
	for _, policy := range policies {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			test(t, Options{Policy: policy})
		})
	}
}

// ForEachPolicyInTurn runs a test with one policy after the other, and beside no other test.
func ForEachPolicyInTurn(t *testing.T, test func(t *testing.T, options Options)) {
	t.Helper()
	for _, policy := range policies {
		t.Run(string(policy), func(t *testing.T) { test(t, Options{Policy: policy}) })
	}
}

// IsObject tells whether decisions reserve whole objects.
func (c *Cluster) IsObject() bool { return c.options.Policy == config.ObjectCapacityReservation }
