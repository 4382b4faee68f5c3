// SPDX-License-Identifier: Apache-2.0

// Package api tests the new fields and the manifests of the docs as a user sees them:
// with kubectl, on the cluster that KUBECONFIG names. `make e2e` brings up a cluster and
// runs it.
//
// Environment:
//
//   - KUBECONFIG: the cluster. Required: without one nothing is tested, and that
//     is a failure.
//   - KUBECTL: the kubectl to test. Default: the one that was built.
//   - CAPACITYV2_CLUSTER_MODE: "control-plane" where the cluster has no node.
//   - CAPACITYV2_DRIVER: "reference" where the cluster has the reference driver and more
//     than one node. TestReferenceDriverExample is skipped otherwise.
//
// Every test but TestStoryManifests, which is about the schema, fails on a cluster whose gate
// is off. How pods and volumes are scheduled is tested in
// test-e2e/storagecapacity.
package api
