// SPDX-License-Identifier: Apache-2.0

// Package clustertest runs a control plane for black-box tests of the scheduler: the scheduler and the controllers that bind
// claims and create those of generic ephemeral volumes are the real ones, in the test binary. There is no kubelet: a pod has
// succeeded when it has its node. Drivers come from the package modeldriver.
//
// kube-apiserver is the program that is released, with an etcd for each package. Tests borrow one, which is wiped when they
// end. A test that restarts servers, or has several on one etcd, starts its own.
//
// # Proof that a test tests something
//
// A test that stays green without the feature proves nothing. The environment
// variable CAPACITYV2_TARGET runs the same tests where they have to fail:
//
//   - (unset): the patched kube-apiserver, with the gates that each test asks for
//   - gate-off: the patched kube-apiserver, with CSIStorageCapacityV2 always off
//   - stock: the stock kube-apiserver in place of the patched one
//
// The scheduler has the feature gate off then, too. fails-without.yaml lists which test fails where.
//
// Environment:
//
//   - COMPONENTS, STOCK_COMPONENTS: folders with kube-apiserver, with and without the series
package clustertest
