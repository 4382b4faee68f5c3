// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"os"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// allPoliciesEnv has tests for which the policy makes no difference run with each. make test LONG=1 sets it.
const allPoliciesEnv = "ALL_POLICIES"

var policies = []config.CapacityReservationPolicy{config.InFlightCapacityReservation, config.ObjectCapacityReservation}

// anyPolicy is the default one, unless all are asked for.
func anyPolicy() []config.CapacityReservationPolicy {
	if os.Getenv(allPoliciesEnv) != "" {
		return policies
	}
	return policies[:1]
}

// ForEachPolicy runs a test for each policy of capacityReservation, in parallel with other tests: a control plane mostly
// waits. It is for tests that say where the policies differ. They must not read metrics or change feature gates, which are
// global in a process.
func ForEachPolicy(t *testing.T, test func(t *testing.T, options Options)) {
	t.Helper()
	inParallel(t, policies, test)
}

// ForEachPolicyInTurn is [ForEachPolicy] with one policy after the other, and beside no other test.
func ForEachPolicyInTurn(t *testing.T, test func(t *testing.T, options Options)) {
	t.Helper()
	inTurn(t, policies, test)
}

// ForAnyPolicy is [ForEachPolicy] for tests to which the policy makes no difference. They run with the default one.
func ForAnyPolicy(t *testing.T, test func(t *testing.T, options Options)) {
	t.Helper()
	inParallel(t, anyPolicy(), test)
}

// ForAnyPolicyInTurn is [ForAnyPolicy] beside no other test.
func ForAnyPolicyInTurn(t *testing.T, test func(t *testing.T, options Options)) {
	t.Helper()
	inTurn(t, anyPolicy(), test)
}

func inParallel(t *testing.T, policies []config.CapacityReservationPolicy, test func(t *testing.T, options Options)) {
	t.Helper()
	t.Parallel()
	for _, policy := range policies {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			test(t, Options{Policy: policy})
		})
	}
}

func inTurn(t *testing.T, policies []config.CapacityReservationPolicy, test func(t *testing.T, options Options)) {
	t.Helper()
	for _, policy := range policies {
		t.Run(string(policy), func(t *testing.T) { test(t, Options{Policy: policy}) })
	}
}

// IsObject tells whether decisions reserve whole objects.
func (c *Cluster) IsObject() bool { return c.options.Policy == config.ObjectCapacityReservation }
