// SPDX-License-Identifier: Apache-2.0

// Package skew runs the programs of the series beside those without it: real processes of
// kube-apiserver, kube-scheduler, kube-controller-manager and external-provisioner on one etcd, of
// each kind in each place, and a CSI driver whose pools it knows. There are no kubelets: a pod runs
// when it has its node and its volumes exist.
//
// What has to come out is in expect_test.go. It follows from docs/how-to/install.md and from what
// upstream does, and what does come out is compared with it.
//
// go test runs a few combinations. make test LONG=1, which alone runs this package, runs all of them, and writes what has come
// out to docs/reference/skew-results.md. Environment:
//
//   - COMPONENTS, STOCK_COMPONENTS: folders of the programs with and without the series
package skew
