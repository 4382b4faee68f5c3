package rescheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"capacityv2.internal/test-integration/clustertest"
)

// startHolding starts a control plane whose scheduler stops before it binds a pod to
// the node: before all other plugins, or after them.
func startHolding(t *testing.T, options clustertest.Options, node string, before bool) (*clustertest.Cluster, *clustertest.Hold) {
	t.Helper()
	hold := clustertest.NewHold(func(_ *corev1.Pod, to string) bool { return to == node })
	return start(t, hold.AddTo(options, before)), hold
}
