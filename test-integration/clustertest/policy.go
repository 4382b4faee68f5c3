package clustertest

import (
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// ForEachPolicy runs a test with each policy of capacityReservation, the default
// first. What differs, the test says.
func ForEachPolicy(t *testing.T, test func(t *testing.T, options Options)) {
	t.Helper()
	for _, policy := range []config.CapacityReservationPolicy{config.InFlightCapacityReservation, config.ObjectCapacityReservation} {
		t.Run(string(policy), func(t *testing.T) {
			t.Helper()
			test(t, Options{Policy: policy})
		})
	}
}

// IsObject tells whether decisions reserve whole objects.
func (c *Cluster) IsObject() bool { return c.options.Policy == config.ObjectCapacityReservation }
