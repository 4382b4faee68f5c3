package clustertest

import (
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/apis/config"
)

var policies = []config.CapacityReservationPolicy{config.InFlightCapacityReservation, config.ObjectCapacityReservation}

// ForEachPolicy runs a test with each policy of capacityReservation beside each other
// and beside other tests, which saves time because a control plane mostly waits. What
// differs, the test says. It must not read metrics or change feature gates: they are
// global in a process.
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
