// Package clustertest runs a control plane for black-box tests of the scheduler:
// a kube-apiserver, the scheduler, and the controllers that bind claims and
// create those of generic ephemeral volumes, all of them the real ones, in the
// test binary. There is no kubelet: a pod has succeeded when it has its node.
// Drivers come from the package modeldriver.
//
// With CAPACITYV2_TARGET=gate-off or stock, the scheduler runs with the feature
// gate off, like the server.
package clustertest
