// Package api tests the new fields from the outside: on the cluster that
// KUBECONFIG names, through kubectl as a user runs it, and through client-go as a
// driver does. `make e2e` brings up a cluster and runs it.
//
// Environment:
//
//   - KUBECONFIG: the cluster. Required: without one nothing is tested, and that
//     is a failure.
//   - KUBECTL: the kubectl to test. Default: the one that was built.
//   - CAPACITYV2_CLUSTER_MODE: "control-plane" where the cluster has no node, "host"
//     where it cannot have more than one; the tests that need more are skipped
//     then, and only then.
//
// Every test but TestPodRuns and TestPodWithoutRoom, which is about a single volume,
// fails on a cluster whose gate is off.
package api
